"""Tasks: what a person asked for and everything that followed, in one log of events.

    async with store.create(workspace=path) as log:
        await log.append(UserSaid(at=time.time(), text="make the tests pass"))
    messages = model_messages(read_log(log.folder).events)

A record is durable when `append` returns. What the model gets and what a person sees are folded from the log.
"""
