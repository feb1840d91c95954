"""Every exported shape is taken by the real client library it is for."""

from __future__ import annotations

import copy

from pydantic import TypeAdapter

from echoic.integrations.tools import TOOLS, exported

NAMES = [tool.name for tool in TOOLS]


async def nothing(**_given):
    return "done"


def test_openai_takes_the_functions_and_the_strict_ones():
    from openai.types.chat import ChatCompletionFunctionToolParam

    for shape in ("openai", "openai-strict"):
        taken = TypeAdapter(list[ChatCompletionFunctionToolParam]).validate_python(exported(shape))
        assert [each["function"]["name"] for each in taken] == NAMES


def test_openais_strict_rules_leave_the_strict_schemas_as_they_are():
    from agents.strict_schema import ensure_strict_json_schema

    for each in exported("openai-strict"):
        schema = each["function"]["parameters"]
        assert ensure_strict_json_schema(copy.deepcopy(schema)) == schema


def test_anthropic_takes_them():
    from anthropic.types import ToolParam

    assert [
        each["name"] for each in TypeAdapter(list[ToolParam]).validate_python(exported("anthropic"))
    ] == NAMES


def test_gemini_takes_them_as_function_declarations():
    from google.genai import types

    tool = types.Tool.model_validate({"functionDeclarations": exported("gemini")})
    assert [each.name for each in tool.function_declarations] == NAMES
    assert tool.function_declarations[0].parameters_json_schema["required"] == ["query"]


def test_langchain_makes_tools_of_them_that_it_can_hand_to_any_model():
    from langchain_core.tools import StructuredTool
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = [StructuredTool(coroutine=nothing, **each) for each in exported("langchain")]
    told = [convert_to_openai_tool(tool)["function"] for tool in tools]
    assert [each["name"] for each in told] == NAMES
    assert told[2]["parameters"]["required"] == ["key", "value"]


def test_livekit_takes_them_as_raw_schemas():
    from livekit.agents.llm import ToolContext, function_tool

    async def work(raw_arguments: dict[str, object]) -> str:
        return str(raw_arguments)

    tools = ToolContext([function_tool(work, raw_schema=each) for each in exported("livekit")])
    assert list(tools.function_tools) == NAMES


def test_pipecat_takes_them_as_function_schemas():
    from pipecat.adapters.llm.schemas.function_schema import FunctionSchema
    from pipecat.adapters.llm.schemas.tools_schema import ToolsSchema
    from pipecat.adapters.llm.services.open_ai_adapter import OpenAILLMAdapter

    schema = ToolsSchema(standard_tools=[FunctionSchema(**each) for each in exported("pipecat")])
    told = OpenAILLMAdapter().to_provider_tools_format(schema)
    assert [each["function"]["name"] for each in told] == NAMES


def test_vapi_is_given_what_its_documentation_shows():
    """It has no client library for Python to ask."""
    for each, name in zip(exported("vapi"), NAMES, strict=True):
        assert each["type"] == "function"
        assert each["function"]["name"] == name
        assert each["function"]["parameters"]["type"] == "object"
