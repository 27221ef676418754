"""Language models: messages, providers, prices.

messages.py     a conversation, independent of any provider
provider.py     the `Model` protocol, its requests and its errors
factory.py      open_model("provider/name")
model_catalog.py  known providers, context windows and prices
anthropic.py    Anthropic's Messages API
openai.py       Chat Completions, for OpenAI-compatible servers
openai_responses.py  OpenAI's Responses API
scripted.py     a model that replays a file
xml_calls.py    tool calls as XML, for models without native ones

The SDKs are imported with the first request.
"""
