"""Hypothesis strategies for static schemas and for entries of the datasets that they describe."""

import datetime
import math

from hypothesis import strategies as st

from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema

COUNTED, TEXT, WHOLE, EMPTY = "counted", "text", "whole", "empty"
KINDS = {"store": COUNTED, "region": TEXT, "zone": WHOLE}
"""Kind that a categorical name has when schemas shall fit together."""
REALS = ("size", "area")
WORDS = ("red", "green", "blue", "", "1", "ä\ud800")
NUMBERS = (0, 1, 2, -5, 7, 10**30)

finite = st.floats(allow_nan=False, allow_infinity=False)
scalings = st.builds(
    Scaling,
    mean=finite,
    std=st.floats(min_value=0, exclude_min=True, allow_infinity=False, allow_nan=False),
)
moderate = st.floats(-1e3, 1e3)
moderate_scalings = st.builds(Scaling, mean=moderate, std=st.floats(0.1, 1e3))


def categorical_features(name, kinds=(COUNTED, TEXT, WHOLE, EMPTY), *, filled=False):
    """Categorical features of a name; the reserved row stands anywhere, as it does after widening."""

    @st.composite
    def draw_feature(draw):
        kind = draw(st.sampled_from(kinds))
        vocabulary = {
            TEXT: st.lists(st.sampled_from(WORDS), max_size=5, unique=True).map(tuple),
            WHOLE: st.lists(st.sampled_from(NUMBERS), max_size=5, unique=True).map(tuple),
            EMPTY: st.just(()),
            COUNTED: st.none(),
        }[kind]
        known = draw(vocabulary)
        num_known = draw(st.integers(0, 5)) if known is None else len(known)
        unknown = draw(st.integers(0, num_known) if num_known == 0 else st.none() | st.integers(0, num_known))
        cardinality = num_known + (unknown is not None)
        rows = st.integers(0, cardinality - 1)
        fill = draw(rows if filled else st.none() | rows)
        return CategoricalFeature(
            name=name, cardinality=cardinality, fill_id=fill, vocabulary=known, unknown_id=unknown
        )

    return draw_feature()


def real_features(name, *, filled=False):
    """Real features of a name."""
    return st.builds(
        RealFeature,
        name=st.just(name),
        fill=moderate if filled else st.none() | finite,
        scaling=st.none() | (moderate_scalings if filled else scalings),
        indicator=st.booleans(),
    )


def static_schemas(*, filled=False):
    """Schemas any two of which may be widened without an error: a name has one kind.

    With `filled`, whatever is missing is filled with a moderate value, so that hardly an entry is refused.
    """

    @st.composite
    def draw_schema(draw):
        cats = [name for name in draw(st.permutations(sorted(KINDS))) if draw(st.integers(0, 3))]
        reals = [name for name in draw(st.permutations(REALS)) if draw(st.integers(0, 3))]
        kinds = {name: (KINDS[name],) if KINDS[name] == COUNTED else (KINDS[name], EMPTY) for name in cats}
        return StaticSchema(
            categorical=[draw(categorical_features(name, kinds[name], filled=filled)) for name in cats],
            real=[draw(real_features(name, filled=filled)) for name in reals],
            placeholder=draw(st.sampled_from(("column", "omit"))),
        )

    return draw_schema()


def conflicting_schemas():
    """Schemas of one or two names, each of any kind: widening raises about as often as not."""

    @st.composite
    def draw_schema(draw):
        names = draw(st.sampled_from((("store",), ("store",), ("store", "size"))))
        features = [
            draw(categorical_features(name) if draw(st.integers(0, 7)) else real_features(name)) for name in names
        ]
        return StaticSchema(
            categorical=[f for f in features if isinstance(f, CategoricalFeature)],
            real=[f for f in features if isinstance(f, RealFeature)],
        )

    return draw_schema()


def categories(feature):
    """Values that an entry may hold for a feature in its own dataset: names, ids, missing, unseen names."""
    options = [st.none(), st.just(math.nan)]
    if feature.vocabulary:
        options.append(st.sampled_from(feature.vocabulary))
    whole = bool(feature.vocabulary) and not isinstance(feature.vocabulary[0], str)
    if feature.num_known and not whole:
        options.append(st.integers(0, feature.num_known - 1))
    if feature.vocabulary is not None:
        options.append(st.sampled_from(NUMBERS if whole else WORDS))
    return st.one_of(options)


def entries(schema):
    """Entries of the dataset that a schema describes: fields whole, partly missing, or absent."""
    cats = [categories(feature) for feature in schema.categorical]
    reals = [st.none() | st.floats(-1e6, 1e6, width=32) for _ in schema.real]
    statics = {}
    if cats:
        statics["feat_static_cat"] = st.tuples(*cats).map(list) | st.none()
    if reals:
        statics["feat_static_real"] = st.tuples(*reals).map(list) | st.none()
    return st.fixed_dictionaries({"item_id": st.sampled_from("abc")}, optional=statics)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
dates = st.dates(datetime.date(1950, 1, 1), datetime.date(2050, 1, 1))
