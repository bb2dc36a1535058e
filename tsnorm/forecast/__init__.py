"""Forecasts of a trained model, and how good they are.

:mod:`tsnorm.forecast.model_folder`
    A trained model with its schema, from its folder.
:mod:`tsnorm.forecast.scores`
    Scores of forecasts by ``gluonts.ev``.
:mod:`tsnorm.forecast.backtest`
    A model against the known end of each series, beside seasonal naive.
"""
