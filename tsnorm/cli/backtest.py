"""`tsnorm backtest`: how good a trained model is on the known end of each series."""

from __future__ import annotations

import functools
import json
from typing import Any

import click


@click.command("backtest", short_help="Score a trained model beside seasonal naive.")
@click.argument("model", type=click.Path(exists=True, file_okay=False))
@click.argument("data", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option("--split", default="test", show_default=True, help="Split whose series have the horizon appended.")
@click.option("--samples", type=click.IntRange(min=1), default=100, show_default=True, help="Sample paths a forecast.")
@click.option("--batch-size", type=click.IntRange(min=1), default=64, show_default=True, help="Series at a time.")
@click.option("--seed", type=int, default=0, show_default=True, help="Fixes the samples.")
@click.option("--output", type=click.Path(dir_okay=False), default=None, help="Report as JSON.")
def command(
    model: str, data: tuple[str, ...], split: str, samples: int, batch_size: int, seed: int, output: str | None
) -> int:
    """Score MODEL, a folder that `tsnorm train` wrote (or the best/ in it), on dataset folders DATA.

    The last prediction-length steps of each series are forecast from those before. Scores: MASE and sMAPE of the
    median, weighted quantile loss, share of values inside the 80 % interval; per dataset, and per category.
    """
    from rich.console import Console
    from rich.progress import Progress

    from tsnorm.files import write_atomically
    from tsnorm.forecast.backtest import backtest
    from tsnorm.forecast.model_folder import TrainedModel
    from tsnorm.pipeline import TimeSeriesDataset

    console = Console(markup=False, highlight=False)
    trained = TrainedModel.load(model)
    report: dict[str, Any] = {"model": model, "samples": samples, "seed": seed, "datasets": {}}
    for path in data:
        dataset = TimeSeriesDataset.from_folder(path, split=split)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task(dataset.name, total=len(dataset.entries))
            report["datasets"][dataset.name] = backtest(
                trained,
                dataset,
                batch_size=batch_size,
                num_samples=samples,
                seed=seed,
                on_batch=functools.partial(bar.advance, task),
            )
    console.print(_table(report["datasets"]))
    if output is not None:
        write_atomically(output, (json.dumps(report, indent=2) + "\n").encode())
        console.print(f"report in {output}")
    return 0


def _table(datasets: dict[str, Any]) -> Any:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for name in ("series", "forecast", "n", "MASE", "sMAPE", "WQL", "in 80 %"):
        table.add_column(name, justify="left" if name in ("series", "forecast") else "right")
    for name, result in datasets.items():
        groups = {name: result}
        for feature, categories in result["by_category"].items():
            groups |= {f"  {feature} = {category}": scores for category, scores in categories.items()}
        for group, scores in groups.items():
            for forecast in ("model", "seasonal_naive"):
                s = scores[forecast]
                table.add_row(
                    group if forecast == "model" else "",
                    forecast.replace("_", " "),
                    str(s["num_series"]),
                    "-" if s["mase"] is None else f"{s['mase']:.3f}",
                    f"{s['smape']:.3f}",
                    f"{s['mean_weighted_quantile_loss']:.3f}",
                    f"{s['coverage_80']:.0%}" if forecast == "model" else "-",
                )
        if result["skipped"]:
            table.add_row(f"  {len(result['skipped'])} too short", *[""] * 6)
    return table
