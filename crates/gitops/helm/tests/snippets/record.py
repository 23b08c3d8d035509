#!/usr/bin/env python3
"""Records what helm makes of each line of templates.txt: `record.py HELM > recorded.jsonl`."""

import json
import pathlib
import subprocess
import sys
import tempfile

here = pathlib.Path(__file__).parent


def render(helm, template):
    with tempfile.TemporaryDirectory() as folder:
        chart = pathlib.Path(folder) / "demo"
        (chart / "templates").mkdir(parents=True)
        (chart / "Chart.yaml").write_text("apiVersion: v2\nname: demo\nversion: 0.1.0\nappVersion: \"1.0\"\n")
        (chart / "values.yaml").write_text((here / "values.yaml").read_text())
        (chart / "templates" / "_t.tpl").write_text('{{ define "t" }}' + template + "{{ end }}")
        (chart / "templates" / "a.yaml").write_text('x: {{ include "t" . | toJson }}\n')
        answer = subprocess.run([helm, "template", "r", str(chart)], capture_output=True, text=True)
    if answer.returncode != 0:
        advice = "\n\nUse --debug flag to render out invalid YAML"
        return {"template": template, "error": answer.stderr.strip().removeprefix("Error: ").removesuffix(advice)}
    line = next(line for line in answer.stdout.splitlines() if line.startswith("x: "))
    return {"template": template, "output": json.loads(line[3:])}


for line in (here / "templates.txt").read_text().splitlines():
    print(json.dumps(render(sys.argv[1], line), ensure_ascii=False))
