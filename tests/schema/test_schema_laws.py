"""Laws of StaticSchema: widening, round trips, fingerprints."""

import dataclasses
import json
import pickle

import pytest
from gluonts.core.component import equals
from gluonts.core.serde import decode, dump_json, encode, load_json
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracles import RESERVED, meaning_of_row, meanings, united_meanings
from schema_strategies import conflicting_schemas, json_values, static_schemas

from tsnorm.errors import SchemaError
from tsnorm.schema import CategoricalFeature, RealFeature, Scaling, StaticSchema

laws = settings(max_examples=100, deadline=None)
schemas = static_schemas()


def by_name(schema):
    return {feature.name: feature for feature in (*schema.categorical, *schema.real)}


def outcome(widen):
    try:
        return widen()
    except SchemaError:
        return "raises"


@laws
@given(schemas, schemas, schemas)
def test_widening_is_associative(a, b, c):
    assert (a | b) | c == a | (b | c)


@laws
@given(conflicting_schemas(), conflicting_schemas(), conflicting_schemas())
def test_widening_is_associative_in_whether_it_raises(a, b, c):
    assert outcome(lambda: (a | b) | c) == outcome(lambda: a | (b | c))


MIX = {
    "absent": StaticSchema(),
    "real": StaticSchema(real=[RealFeature(name="x")]),
    **{
        kind: StaticSchema(categorical=[CategoricalFeature.make("x", **known)])
        for kind, known in {
            "counted": {"num_known": 2},
            "more": {"num_known": 3, "missing": "error"},
            "text": {"vocabulary": ("a", "b")},
            "whole": {"vocabulary": (0, 7)},
            "empty": {"vocabulary": ()},
        }.items()
    },
}


@pytest.mark.parametrize("a", MIX)
@pytest.mark.parametrize("b", MIX)
def test_every_mix_of_kinds_is_associative_in_whether_it_raises(a, b):
    for c in MIX:
        left, right = outcome(lambda c=c: (MIX[a] | MIX[b]) | MIX[c]), outcome(lambda c=c: MIX[a] | (MIX[b] | MIX[c]))
        assert left == right, c


@laws
@given(conflicting_schemas(), conflicting_schemas())
def test_whether_widening_raises_does_not_depend_on_the_side(a, b):
    assert (outcome(lambda: a | b) == "raises") == (outcome(lambda: b | a) == "raises")


@laws
@given(schemas, schemas)
def test_widening_is_idempotent_and_absorbs(a, b):
    assert a | a == a
    assert (a | b) | b == a | b
    assert (a | b) | a == a | b
    assert a | (a | b) == a | b


@laws
@given(schemas)
def test_the_empty_schema_is_neutral(a):
    empty = StaticSchema(placeholder=a.placeholder)
    assert a | empty == a
    assert empty | a == a


@laws
@given(schemas, schemas)
def test_rows_keep_their_meaning_under_widening(a, b):
    wide = by_name(a | b)
    for feature in a.categorical:
        grown = wide[feature.name]
        assert meanings(grown)[: feature.cardinality] == meanings(feature)
        if feature.unknown_id is not None:
            assert grown.unknown_id == feature.unknown_id
        if feature.fill_id is not None:
            assert grown.fill_id == feature.fill_id


@laws
@given(schemas, schemas)
def test_widening_unites_as_the_oracle_says(a, b):
    theirs = by_name(b)
    wide = a | b
    only_b = [name for name in by_name(b) if name not in by_name(a)]
    assert [f.name for f in wide.categorical] == [
        *(f.name for f in a.categorical),
        *(f.name for f in b.categorical if f.name in only_b),
    ]
    assert [f.name for f in wide.real] == [
        *(f.name for f in a.real),
        *(f.name for f in b.real if f.name in only_b),
    ]
    for feature in a.categorical:
        grown = by_name(wide)[feature.name]
        assert meanings(grown) == united_meanings(feature, theirs.get(feature.name, feature))
    for name in only_b:
        assert by_name(wide)[name] == theirs[name]


@laws
@given(schemas, schemas)
def test_what_the_first_leaves_open_comes_from_the_second(a, b):
    mine, theirs, wide = by_name(a), by_name(b), by_name(a | b)
    for name in mine.keys() & theirs.keys():
        first, second, grown = mine[name], theirs[name], wide[name]
        if isinstance(first, RealFeature):
            assert grown.fill == (second.fill if first.fill is None else first.fill)
            assert grown.scaling == (second.scaling if first.scaling is None else first.scaling)
            assert grown.indicator == (first.indicator or second.indicator)
        elif first.fill_id is None and second.fill_id is None:
            assert grown.fill_id is None
        elif first.fill_id is None:
            assert meaning_of_row(grown, grown.fill_id) == meaning_of_row(second, second.fill_id)


@laws
@given(schemas)
def test_row_and_known_id_are_inverse(a):
    for feature in a.categorical:
        assert [feature.known_id(feature.row(k)) for k in range(feature.num_known)] == list(range(feature.num_known))
        for row in range(feature.cardinality):
            known_id = feature.known_id(row)
            assert (known_id is None) == (meaning_of_row(feature, row) == RESERVED)
            assert known_id is None or feature.row(known_id) == row


@laws
@given(schemas)
def test_it_survives_every_way_to_store_it(a):
    for restored in (
        StaticSchema.from_json(a.to_json()),
        StaticSchema.from_json(a.to_json().encode()),
        pickle.loads(pickle.dumps(a)),
        decode(encode(a)),
        load_json(dump_json(a)),
    ):
        assert restored == a
        assert equals(restored, a)
        assert hash(restored) == hash(a)
        assert restored.fingerprint() == a.fingerprint()
        assert restored.to_json() == a.to_json()


@settings(max_examples=20, deadline=None)
@given(schemas)
def test_it_survives_a_file(tmp_path_factory, a):
    path = tmp_path_factory.mktemp("schema") / "new" / "schema.json"
    a.save(path)
    assert StaticSchema.load(path) == a
    assert StaticSchema.load(str(path)).fingerprint() == a.fingerprint()
    assert [file.name for file in path.parent.iterdir()] == ["schema.json"]


@laws
@given(schemas, schemas)
def test_fingerprints_are_equal_exactly_where_schemas_are(a, b):
    assert len(a.fingerprint()) == 32
    assert int(a.fingerprint(), 16) >= 0
    assert (a.fingerprint() == b.fingerprint()) == (a == b)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (RealFeature(name="size", fill=0.0), RealFeature(name="size", fill=-0.0)),
        (RealFeature(name="size", fill=1), RealFeature(name="size", fill=1.0)),
        (
            RealFeature(name="size", scaling=Scaling(mean=0, std=1)),
            RealFeature(name="size", scaling=Scaling(mean=-0.0, std=1.0)),
        ),
    ],
)
def test_equal_numbers_of_another_spelling_have_equal_fingerprints(one, other):
    a, b = StaticSchema(real=[one]), StaticSchema(real=(other,))
    assert a == b
    assert a.fingerprint() == b.fingerprint()
    assert a.to_json() == b.to_json()


BASE = StaticSchema(
    categorical=[
        CategoricalFeature(name="region", cardinality=3, fill_id=2, vocabulary=("red", "blue"), unknown_id=2),
        CategoricalFeature(name="store", cardinality=4),
    ],
    real=[RealFeature(name="size", fill=0.5, scaling=Scaling(mean=1.0, std=2.0)), RealFeature(name="area")],
)
CHANGES = [
    {"placeholder": "omit"},
    {"categorical": BASE.categorical[::-1]},
    {"categorical": BASE.categorical[:1]},
    {"real": BASE.real[::-1]},
    {"real": ()},
    *(
        {"categorical": (dataclasses.replace(BASE.categorical[0], **change), BASE.categorical[1])}
        for change in (
            {"name": "other"},
            {"fill_id": 1},
            {"fill_id": None},
            {"unknown_id": 1},
            {"vocabulary": ("red", "green")},
            {"vocabulary": ("blue", "red")},
            {"vocabulary": (1, 2)},
            {"vocabulary": ("1", "2")},
            {"vocabulary": None},
            {"cardinality": 4, "vocabulary": ("red", "blue", "green")},
        )
    ),
    *(
        {"real": (dataclasses.replace(BASE.real[0], **change), BASE.real[1])}
        for change in (
            {"name": "other"},
            {"fill": 0.25},
            {"fill": None},
            {"indicator": True},
            {"scaling": None},
            {"scaling": Scaling(mean=1.5, std=2.0)},
            {"scaling": Scaling(mean=1.0, std=2.5)},
        )
    ),
]


def test_any_change_changes_the_fingerprint():
    prints = {BASE.fingerprint(), *(dataclasses.replace(BASE, **change).fingerprint() for change in CHANGES)}
    assert len(prints) == 1 + len(CHANGES)


def test_the_fingerprint_is_frozen():
    # Checkpoints and ranks compare it: a release that changes it must raise VERSION.
    assert BASE.fingerprint() == "f7fc600aee02aa844e2aa4fdd85dceab"


def paths(data, prefix=()):
    """Every place in a JSON tree."""
    yield prefix
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield from paths(value, (*prefix, key))


def mutate(data, path, value, delete):
    if not path:
        return value
    spot = data
    for key in path[:-1]:
        spot = spot[key]
    if delete:
        del spot[path[-1]]
    else:
        spot[path[-1]] = value
    return data


def read_or_refuse(text):
    try:
        schema = StaticSchema.from_json(text)
    except SchemaError as error:
        message = str(error)
    else:
        assert StaticSchema.from_json(schema.to_json()) == schema
        return
    assert message.startswith(("schema: ", "categorical feature ", "real feature ", "static feature: ", "scaling: "))


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_mutated_json_is_a_schema_or_a_schema_error(data):
    tree = json.loads(data.draw(st.just(BASE) | schemas).to_json())
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(paths(tree))))
        tree = mutate(tree, path, data.draw(json_values), data.draw(st.booleans()))
    read_or_refuse(json.dumps(tree))


@settings(max_examples=120, deadline=None)
@given(st.binary(max_size=40) | st.text(max_size=40), st.integers(0, 600), st.integers(0, 5))
@example(b"\xef\xbb\xbf{}", 0, 0)
@example(b"", 0, 0)
def test_garbled_text_is_a_schema_or_a_schema_error(noise, at, drop):
    text = BASE.to_json()
    if isinstance(noise, bytes):
        text = text.encode()
    read_or_refuse(noise)
    read_or_refuse(text[:at] + noise + text[at + drop :])
    read_or_refuse(text[:at])
