"""Slow, obvious meanings that the library's own code is compared with."""

import math

RESERVED = "the reserved row"
REFUSED = "refused"


def meaning_of_row(feature, row):
    """What a row of a categorical feature's table stands for: ("id", 3), ("name", "red") or RESERVED."""
    if row == feature.unknown_id:
        return RESERVED
    known_before = len([other for other in range(row) if other != feature.unknown_id])
    if feature.vocabulary is None:
        return ("id", known_before)
    return ("name", feature.vocabulary[known_before])


def meanings(feature):
    """Meaning of each row of a table, in row order."""
    return [meaning_of_row(feature, row) for row in range(feature.cardinality)]


def united_meanings(first, second):
    """Meanings of the rows of the widened feature: all of the first, then what only the second has."""
    united = meanings(first)
    for meaning in meanings(second):
        if meaning not in united:
            united.append(meaning)
    return united


def row_of_category(value, source, target):
    """Row of the target's table for what an entry holds in terms of the source; None for a missing one."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if source.vocabulary is None:
        meaning = ("id", value)
    elif isinstance(value, str) or (source.vocabulary and not isinstance(source.vocabulary[0], str)):
        meaning = ("name", value)
    elif 0 <= value < len(source.vocabulary):
        meaning = ("name", source.vocabulary[value])
    else:
        return REFUSED
    for row in range(target.cardinality):
        if meaning_of_row(target, row) == meaning:
            return row
    return REFUSED if target.unknown_id is None else target.unknown_id


def static_cat_rows(entry, source, target):
    """feat_static_cat that an entry of the source gets in the target's model, a list of K rows; or REFUSED."""
    values = entry.get("feat_static_cat")
    rows = []
    for feature in target.categorical:
        row = None
        for k, column in enumerate(source.categorical):
            if column.name == feature.name and values is not None:
                row = row_of_category(values[k], column, feature)
        if row is None:
            row = REFUSED if feature.fill_id is None else feature.fill_id
        rows.append(row)
    if REFUSED in rows:
        return REFUSED
    if not target.categorical and target.placeholder == "column":
        return [0]
    return rows


def static_real_values(entry, source, target):
    """feat_static_real that an entry of the source gets in the target's model; or REFUSED."""
    values = entry.get("feat_static_real")
    out, indicators = [], []
    for feature in target.real:
        value = None
        for r, column in enumerate(source.real):
            if column.name == feature.name and values is not None:
                value = values[r]
        if value is None and feature.fill is None:
            return REFUSED
        if feature.indicator:
            indicators.append(1.0 if value is None else 0.0)
        number = feature.fill if value is None else value
        if feature.scaling is not None:
            number = (number - feature.scaling.mean) / feature.scaling.std
        if not -3.4028234663852886e38 <= number <= 3.4028234663852886e38:
            return REFUSED
        out.append(number)
    if not target.real and target.placeholder == "column":
        return [0.0]
    return out + indicators


def _splitmix(z):
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    return z ^ (z >> 31)


def uniform_of(seed, *counters):
    """Uniform number of a seed and counters, in Python's unbounded integers."""
    state = seed % 2**64
    for counter in counters:
        state = _splitmix((state + 0x9E3779B97F4A7C15 + _splitmix(counter % 2**64)) % 2**64)
    return (state // 2**11) / 2**53
