"""Hypothesis strategies for entries, and what it means that two are equal."""

import math

import numpy as np
from hypothesis import strategies as st

from tsnorm.errors import SOURCE_FIELD

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
values = st.one_of(st.none(), st.floats(), st.integers(-(2**53), 2**53))
ids = st.integers(-(2**63), 2**63 - 1)
TARGETS = ("flat", "channels")


def matrices(items, num_steps):
    return st.integers(1, 3).flatmap(
        lambda rows: st.lists(st.lists(items, min_size=num_steps, max_size=num_steps), min_size=rows, max_size=rows)
    )


def containers(rows):
    """The same numbers as lists, tuples or arrays, where an array can hold them."""
    forms = [rows, tuple(rows)]
    if rows and all(isinstance(value, float) for value in rows):
        forms.append(np.array(rows))
    return st.sampled_from(forms)


@st.composite
def entries(draw, categories, width=None, targets=TARGETS):
    """One entry with categories of one kind; static fields have the given width, or any."""
    bounds = {"max_size": 3} if width is None else {"min_size": width, "max_size": width}
    num_steps = draw(st.integers(0, 5))
    steps = st.lists(values, min_size=num_steps, max_size=num_steps)
    target = draw(steps) if draw(st.sampled_from(targets)) == "flat" else draw(matrices(values, num_steps))
    optional = {
        "item_id": words,
        "start": st.sampled_from(["2022-01-01", "2022-03", "1750-01-01 00:00:00"]),
        "feat_static_cat": st.lists(categories | st.none(), **bounds),
        "feat_static_real": st.lists(values, **bounds),
        "feat_dynamic_real": matrices(values, num_steps + 2),
        "past_feat_dynamic_real": matrices(values, max(num_steps, 4)),
        "feat_dynamic_cat": matrices(st.integers(-(2**53), 2**53), max(num_steps, 4)),
        "note": st.just("not stored"),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(optional))))
    entry = {name: draw(optional[name]) for name in sorted(chosen)}
    return {"target": draw(containers(target)), **entry}


category_kinds = st.sampled_from([words, st.booleans(), ids, st.integers(0, 9), st.integers(-5, 5) | st.floats()])
datasets = st.tuples(category_kinds, st.sampled_from([None, 1, 2])).flatmap(
    lambda form: st.lists(entries(*form), max_size=8)
)


def as_lists(value):
    return value.tolist() if isinstance(value, np.ndarray) else list(value)


def comparable(entry):
    """The stored fields of an entry in plain Python, with null as NaN where the layout makes it so."""
    plain = {name: value for name, value in entry.items() if name not in (SOURCE_FIELD, "note")}
    for name, value in plain.items():
        if name not in ("item_id", "start"):
            plain[name] = _nested(as_lists(value), keep_none=name.startswith("feat_static"))
    return plain


def _nested(value, keep_none):
    if isinstance(value, list | tuple):
        return tuple(_nested(item, keep_none) for item in value)
    if value is None and keep_none:
        return None
    return "NaN" if value is None or (isinstance(value, float) and math.isnan(value)) else value
