"""Triton's interpreter, quick enough for tests."""

from triton.runtime import interpreter


def patch_each_module_once():
    """A kernel's helpers patch Triton's language again at each call, which takes most of the time. Once will do."""
    patched = set()

    def call(self, *args, **keywords):
        if self.fn.__module__ not in patched:
            patched.add(self.fn.__module__)
            interpreter._patch_lang(self.fn)
        return self.rewrite()(*args, **keywords)

    interpreter.InterpretedFunction.__call__ = call
