"""The standard dataclass, cheaper to define: its methods are not compiled before somebody makes an object.

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Seen: …

Half of what importing Tarmac cost was `dataclasses` compiling five functions for each of 300 classes (ADR 70). Here
the standard library collects the fields and makes the slots; `__init__` is written at the first object, and the others
are shared functions. `fields`, `replace`, `asdict`, `match` and msgspec see an ordinary dataclass; type checkers too.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from contextlib import contextmanager
    from dataclasses import MISSING, FrozenInstanceError
    from operator import attrgetter
    from reprlib import recursive_repr
    from threading import Lock
    from types import MemberDescriptorType

    _one_at_a_time = Lock()

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """As `dataclasses.dataclass`, with those of its options that Tarmac uses."""
        collected = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)

        def decorate(cls):
            with _thawed(cls.__mro__):
                cls = collected(cls)
            said = cls.__dataclass_params__
            said.init, said.repr, said.eq, said.frozen = True, True, eq, frozen
            methods = {"__init__": _init(cls, frozen), "__repr__": _repr}
            if eq:
                methods |= _comparing(cls, frozen)
            if frozen:
                methods |= _freezing(cls)
            if frozen and slots:
                methods |= {"__getstate__": _getstate, "__setstate__": _setstate}
            for name, method in methods.items():
                if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
                    setattr(cls, name, method)
            return cls

        return decorate if cls is None else decorate(cls)

    @contextmanager
    def _thawed(classes):
        """The standard library makes no class from frozen ones that is not frozen (by functions it compiles) itself."""
        said = [each.__dict__["__dataclass_params__"] for each in classes if "__dataclass_params__" in each.__dict__]
        with _one_at_a_time:
            frozen = [each for each in said if each.frozen]  # in here: another thread may have thawed them just now
            for each in frozen:
                each.frozen = False
            try:
                yield
            finally:
                for each in frozen:
                    each.frozen = True

    # __init__, when it is first called

    def _init(cls, frozen):
        def write_and_call(self, *args, **values):
            cls.__init__ = _written_init(cls, frozen)
            cls.__init__(self, *args, **values)

        return write_and_call

    def _written_init(cls, frozen):
        every = dataclasses.fields(cls)
        known = {"_MISSING": MISSING, "_set": object.__setattr__}
        names, keywords, body = [], [], []
        for each in every:
            name, value = each.name, each.name
            if each.default_factory is not MISSING:
                known[f"_make_{name}"] = each.default_factory
                value = f"_make_{name}() if {name} is _MISSING else {name}" if each.init else f"_make_{name}()"
                default = "=_MISSING"
            elif each.default is not MISSING:
                known[f"_default_{name}"] = each.default
                value = name if each.init else f"_default_{name}"
                default = f"=_default_{name}"
            elif each.init:
                default = ""
            else:
                continue
            if each.init:
                (keywords if each.kw_only else names).append(f"{name}{default}")
            if not frozen:
                body.append(f"self.{name} = {value}")
            elif isinstance(slot := getattr(cls, name, None), MemberDescriptorType):  # half of what the next way costs
                known[f"_set_{name}"] = slot.__set__
                body.append(f"_set_{name}(self, {value})")
            else:
                body.append(f"_set(self, {name!r}, {value})")
        if hasattr(cls, "__post_init__"):
            body.append("self.__post_init__()")
        arguments = ", ".join(["self", *names, *(["*", *keywords] if keywords else [])])
        exec(f"def __init__({arguments}):\n " + "\n ".join(body or ["pass"]), known)
        made = known["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        made.__annotations__ = {each.name: each.type for each in every if each.init} | {"return": None}
        return made

    # What all of them share

    @recursive_repr()
    def _repr(self):
        shown = (f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _comparing(cls, frozen):
        every = dataclasses.fields(cls)
        values = _reader([each.name for each in every if each.compare])

        def equal(self, other):
            return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

        if not frozen:
            return {"__eq__": equal, "__hash__": None}
        hashed = _reader([each.name for each in every if (each.compare if each.hash is None else each.hash)])
        return {"__eq__": equal, "__hash__": lambda self: hash(hashed(self))}

    def _reader(names):
        """A function from an object to the tuple of these attributes."""
        match names:
            case []:
                return lambda self: ()
            case [name]:
                return lambda self: (getattr(self, name),)
            case _:
                return attrgetter(*names)

    def _freezing(cls):
        names = frozenset(each.name for each in dataclasses.fields(cls))

        def refuse_to_set(self, name, value):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot assign to field {name!r}")
            super(cls, self).__setattr__(name, value)

        def refuse_to_delete(self, name):
            if type(self) is cls or name in names:
                raise FrozenInstanceError(f"cannot delete field {name!r}")
            super(cls, self).__delattr__(name)

        return {"__setattr__": refuse_to_set, "__delattr__": refuse_to_delete}

    def _getstate(self):
        return [getattr(self, each.name) for each in dataclasses.fields(self)]

    def _setstate(self, state):
        for each, value in zip(dataclasses.fields(self), state, strict=True):
            object.__setattr__(self, each.name, value)
