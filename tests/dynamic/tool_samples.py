"""Tools that tests keep and run."""

from __future__ import annotations

from typing import Any

from reyn_jupyter.dynamic.definition import DynamicTool

# The three examples of the API reference of dynamic tool generation, as they stand there.
STRING_REVERSE = {
    "name": "string_reverse",
    "description": "文字列を逆順にする",
    "code": """
async function execute(params) {
  const input = params.text || "";
  return input.split("").reverse().join("");
}
""",
}
CALCULATE_AVERAGE = {
    "name": "calculate_average",
    "description": "数値の配列から平均値を計算",
    "code": """
async function execute(params) {
  const numbers = params.numbers;
  if (!Array.isArray(numbers) || numbers.length === 0) {
    return { error: "有効な数値配列を指定してください" };
  }
  const sum = numbers.reduce((a, b) => a + b, 0);
  return sum / numbers.length;
}
""",
    "parameters": {
        "numbers": {"type": "array", "description": "平均を計算する数値の配列", "required": True},
        "precision": {
            "type": "number",
            "description": "小数点以下の桁数",
            "default": 2,
            "minimum": 0,
            "maximum": 10,
        },
    },
    "tags": ["math", "statistics"],
}
FETCH_JSON = {
    "name": "fetch_json",
    "description": "指定URLからJSONデータを取得",
    "code": """
async function execute(params) {
  const url = params.url;
  const timeout = params.timeout_ms || 5000;
  
  const controller = new AbortController();
  const timeoutId = setTimeout(() => controller.abort(), timeout);
  
  try {
    const response = await fetch(url, {
      signal: controller.signal,
      headers: { "Accept": "application/json" }
    });
    
    if (!response.ok) {
      return { error: "HTTP " + response.status + ": " + response.statusText };
    }
    
    return await response.json();
  } catch (e) {
    return { error: e.message };
  } finally {
    clearTimeout(timeoutId);
  }
}
""",  # noqa: W293 - as it stands in the reference
    "parameters": {
        "url": {"type": "string", "description": "取得するJSONのURL", "required": True},
        "timeout_ms": {"type": "number", "description": "タイムアウト時間（ミリ秒）", "default": 5000},
    },
    "tags": ["network", "api"],
    "generated_from": "外部API統合タスク",
}

AT = "2026-01-31T09:30:00+00:00"


def sample_tool(name: str = "reverse", **others: Any) -> DynamicTool:
    """Return a tool that reverses a text."""
    return DynamicTool.create(
        **{
            "name": name,
            "description": "Reverse a text",
            "code": 'def execute(params):\n    return params["text"][::-1]\n',
            "at": AT,
            "safety_score": 1.0,
            "quality_score": 0.5,
            **others,
        }
    )
