"""What the mutation campaign samples."""

from pathlib import Path

import balanced_source
import balanced_source_adapters
import balanced_source_operator
import balanced_source_spark
from mutants.sampling import LEFT_OUT, STRATA

_PACKAGES = (
    balanced_source,
    balanced_source_adapters,
    balanced_source_operator,
    balanced_source_spark,
)


def test_each_module_is_sampled_or_left_out_with_a_reason() -> None:
    """What is directly in a package may be left out as one; what is in its packages is named."""
    sampled = {name for names in STRATA.values() for name in names}
    missing = {module for module in _modules() if not _is_named(module, sampled)}

    assert not missing


def test_each_name_is_that_of_a_module() -> None:
    sampled = [name for names in STRATA.values() for name in names]
    modules = _modules()

    assert len(sampled) == len(set(sampled))
    for name in (*sampled, *LEFT_OUT):
        assert any(module == name or module.startswith(f"{name}.") for module in modules), name


def _is_named(module: str, sampled: set[str]) -> bool:
    parts = module.split(".")
    if parts[0] in sampled:
        return True
    if len(parts) == 2 and parts[0] in LEFT_OUT:
        return True
    prefixes = {".".join(parts[:length]) for length in range(2, len(parts) + 1)}
    return bool(prefixes & (sampled | LEFT_OUT.keys()))


def _modules() -> set[str]:
    return {
        ".".join((package.__name__, *path.relative_to(root).with_suffix("").parts))
        for package in _PACKAGES
        for root in map(Path, package.__path__)
        for path in root.rglob("*.py")
        if path.name != "__init__.py"
    }
