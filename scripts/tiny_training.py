"""A model, a text and a configuration so small that a training step takes milliseconds: what scripts/crash_test and
scripts/memory_test train. Standard library only."""
import json
import os
import pathlib
import random
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
VOCABULARY = 320
SYLLABLES = ("ka", "ro", "mi", "ten", "sul", "va", "or", "lin", "de", "pa")
CONFIG = {
    "model": {
        "architecture": "satformer",
        "config_overrides": {
            "vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4, "num_kv_heads": 2,
            "intermediate_size": 48, "max_position_embeddings": 64, "tie_word_embeddings": True}},
    "data": {"seq_length": 16},
    "training": {"batch_size": 4, "gradient_accumulation_steps": 2, "learning_rate": 3e-3, "min_lr": 3e-4,
                 "warmup_steps": 4, "max_steps": 100, "dtype": "float32"},
    "checkpointing": {"checkpoint_interval": 2, "keep_last": 3},
    "logging": {"eval_interval": 2, "eval_tokens": 2048, "log_interval": 1},
    "system": {"seed": 5, "device": "cpu", "threads": 1}}


def words(source):
    return (" ".join("".join(source.choices(SYLLABLES, k=source.randint(1, 3))) for _ in range(source.randint(3, 11)))
            for _ in range(400))


class Setting:
    """A folder with prepared data and a configuration, and the command that trains on them."""

    def __init__(self, binary, seed, config=None, keep=None, changes=()):
        self.binary = pathlib.Path(binary).resolve()
        self.kept = keep is not None
        self._temporary = None
        if self.kept:
            self.folder = pathlib.Path(keep).resolve()
            self.folder.mkdir(parents=True)
        else:
            self._temporary = tempfile.TemporaryDirectory(prefix="satformer_")
            self.folder = pathlib.Path(self._temporary.name)
        self.config = json.loads(pathlib.Path(config).read_text()) if config else json.loads(json.dumps(CONFIG))
        for section, key, value in [("data", "data_dir", str(self.folder / "data")), *changes]:
            self.config.setdefault(section, {})[key] = value
        (self.folder / "config.json").write_text(json.dumps(self.config, indent=1))
        self._prepare(seed)

    def _prepare(self, seed):
        text = self.folder / "text.txt"
        text.write_text(".\n".join(words(random.Random(seed))) + ".\n")
        subprocess.run([self.binary, "prepare", "--input", text, "--document-per", "line", "--vocab-size",
                        str(VOCABULARY), "--val-fraction", "0.3", "--output", self.folder / "data"],
                       check=True, capture_output=True, timeout=60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._temporary:
            self._temporary.cleanup()

    def value(self, section, key):
        return self.config[section][key]

    def train(self, run, error_file):
        """Starts `satformer train --resume` into `run`; its standard error goes to error_file."""
        arguments = [self.binary, "train", self.folder / "config.json", "--output", run, "--resume"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=error_file, env=environment)


def add_options(parser):
    parser.add_argument("--binary", default=ROOT / "build/bin/satformer", help="default: build/bin/satformer")
    parser.add_argument("--seed", type=int, default=1, help="of the text and of all that is random (default 1)")
    parser.add_argument("--keep", metavar="DIR", help="work in this new folder and leave it")
