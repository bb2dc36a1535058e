"""Reading starts fast: without pandas, torch, gluonts or transformers."""

import subprocess
import sys

PROGRAM = """
import sys
from tsnorm.store import entries, read_jsonl, record_batches

full = {
    "item_id": 1, "start": "2022-01", "target": [1, None], "feat_static_cat": ["a", None], "feat_static_real": [1],
    "feat_dynamic_real": [[1, 2]], "feat_dynamic_cat": [[1, 2]], "note": "x",
}
open(sys.argv[1], "w").write('{"target":[1,NaN],"feat_static_cat":[true]}')
for batch in [*record_batches([full, {"target": [1]}]), *record_batches([{"target": [[1]]}]), *read_jsonl(sys.argv[1])]:
    list(entries(batch.slice(1)))
    list(entries(batch))
print(*{"pandas", "torch", "gluonts", "transformers"} & set(sys.modules))
"""


def test_heavy_modules_stay_out(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "data.json")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
