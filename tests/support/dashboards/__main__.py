"""Write the dashboards."""

from support.dashboards import DASHBOARDS, FOLDER

FOLDER.mkdir(exist_ok=True)
for name, dashboard in DASHBOARDS.items():
    (FOLDER / name).write_text(dashboard(), encoding="utf-8")
