"""Writes models for the payloads and outputs of a gateway's job types, from their JSON Schemas:

    jobweaver-types > job_types.py

with JOBWEAVER_URL (default http://localhost:8080) and JOBWEAVER_API_KEY. It needs `pip install jobweaver[types]`.
"""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from .client import Client
from .errors import JobWeaverError


def write_types(types: list[dict[str, Any]]) -> str:
    """Returns the text of the module."""
    try:
        from datamodel_code_generator import InputFileType, PythonVersion, generate
        from datamodel_code_generator.enums import DataModelType
        from datamodel_code_generator.format import Formatter
    except ImportError as error:
        raise JobWeaverError("install the generator: pip install 'jobweaver[types]'") from error
    definitions: dict[str, Any] = {}
    tables: dict[str, dict[str, str]] = {"Payload": {}, "Output": {}}
    for each in sorted(types, key=lambda each: str(each["name"])):
        for what, found in (("Payload", each["schema"]), ("Output", each.get("outputSchema"))):
            if found is not None:
                name = _pascal(each["name"]) + what
                while name in definitions:
                    name += "_"
                schema = {k: v for k, v in found.items() if k not in ("title", "$id", "$schema")}
                definitions[name] = _moved(schema, f"#/components/schemas/{name}")
                tables[what][each["name"]] = name
    text = generate(
        json.dumps(
            {
                "components": {"schemas": definitions},
                "openapi": "3.1.0",
                "info": {"title": "", "version": ""},
                "paths": {},
            }
        ),
        input_file_type=InputFileType.OpenAPI,
        output_model_type=DataModelType.PydanticV2BaseModel,
        target_python_version=PythonVersion.PY_311,
        snake_case_field=True,
        allow_population_by_field_name=True,
        collapse_root_models=True,
        use_annotated=True,
        use_union_operator=True,
        use_standard_collections=True,
        disable_timestamp=True,
        formatters=[Formatter.BUILTIN],
        custom_file_header="# Made by jobweaver-types of the gateway's job types. Do not edit.",
    )
    return f"{str(text).rstrip()}\n\n\n{_table('JOB_TYPES', tables['Payload'])}\n{_table('JOB_OUTPUTS', tables['Output'])}"


def _table(name: str, models: dict[str, str]) -> str:
    members = "".join(f"    {json.dumps(each)}: {model},\n" for each, model in models.items())
    return f"{name}: dict[str, Any] = {{\n{members}}}\n"


def _moved(schema: Any, to: str) -> Any:
    """Returns a schema whose internal references are valid at another place of a document."""
    if isinstance(schema, list):
        return [_moved(each, to) for each in schema]
    if not isinstance(schema, dict):
        return schema
    moved = {key: _moved(value, to) for key, value in schema.items()}
    if isinstance(moved.get("$ref"), str) and moved["$ref"].startswith("#"):
        moved["$ref"] = to + moved["$ref"][1:]
    return moved


def _pascal(name: str) -> str:
    words = [word for word in re.split(r"[^A-Za-z0-9]+", name) if word]
    return "".join(word[0].upper() + (word[1:].lower() if word.isupper() else word[1:]) for word in words)


def main() -> None:
    """The command jobweaver-types."""
    try:
        with Client(os.environ.get("JOBWEAVER_URL", "http://localhost:8080"), os.environ.get("JOBWEAVER_API_KEY")) as client:
            answer = client.request("GET", "/api/job-types")
            sys.stdout.write(write_types(answer.json()["jobTypes"]))
    except JobWeaverError as error:
        sys.exit(f"jobweaver-types: {error}")


if __name__ == "__main__":
    main()
