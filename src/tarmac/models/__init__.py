"""Language models: what is said to them and by them, and who is asked.

messages.py      a conversation in neutral words      provider.py  what a model is; open_model, price, warm
known.py         providers by name                    catalog.py   what models hold and cost
anthropic.py     Claude                               openai.py    all that speak OpenAI's Chat Completions
openai_responses.py  OpenAI's own                     xmlcalls.py  for models without tool calls
scripted.py      plays a file                         tokens.py    how full a context window is

Nothing here imports an SDK before a model is asked.
"""
