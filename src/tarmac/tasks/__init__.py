"""Tasks: what a person asked for and all that came of it, kept as one log of facts.

    async with store.create(workspace=path) as log:
        await log.append(UserSaid(at=time.time(), text="make the tests pass"))
    messages = model_messages(read_log(log.folder).events)

A record is durable when `append` returns; what the model gets, what a person sees and what a list shows are folds.
"""
