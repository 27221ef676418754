"""The one pipeline for tool calls: prepare → judge → ask → record → act → record.

Tasks, the MCP server and the ACP host use it. Each brings an `Asker` (who puts a request to a person) and a `Recorder`
(where the call is written down).

    pipeline = Pipeline(judge, asker, recorder)
    result = await pipeline.run(Call(id=…, name="execute_command", prepare=…))
"""
