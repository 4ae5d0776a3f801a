"""XML files, read as a stream by expat itself, which knows the line of a fault."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from pathlib import Path
from xml.parsers import expat

from zoo import files
from zoo.data import DataError


class XmlFile:
    """An XML file and the functions that its parts are given to.

    Args:
        path: the file, plain or gzipped.
        start: called with the tag and the attributes of each element that begins.
        end: called with the tag of each element that ends.
        characters: called with pieces of text.
    """

    def __init__(
        self,
        path: str | Path,
        start: Callable[[str, dict[str, str]], None],
        end: Callable[[str], None] | None = None,
        characters: Callable[[str], None] | None = None,
    ):
        self.path, self._parser = path, expat.ParserCreate()
        self._parser.StartElementHandler = start
        self._parser.EndElementHandler = end
        self._parser.CharacterDataHandler = characters
        self._parser.EntityDeclHandler = self._entity

    def error(self, expected: str, received: object) -> DataError:
        """An error at the line that is being read."""
        return DataError(self.path, self._parser.CurrentLineNumber, expected, received)

    def read(self) -> None:
        """Reads the file once.

        Raises:
            DataError: if it is not there, is no well-formed XML, is cut off or declares entities.
        """
        try:
            with files.open_bytes(self.path) as file:
                self._parser.ParseFile(file)
        except DataError:
            raise
        except expat.ExpatError as fault:
            raise DataError(self.path, fault.lineno, "well-formed XML in its stated encoding", str(fault)) from fault
        except (ValueError, LookupError) as fault:  # an encoding that expat has not
            line = self._parser.CurrentLineNumber
            raise DataError(self.path, line, "XML in an encoding such as UTF-8", str(fault)) from fault
        except (OSError, EOFError, zlib.error) as fault:
            raise DataError(self.path, None, "a whole gzip stream", str(fault)) from fault

    def _entity(self, name: str, *_) -> None:  # honest files declare none, hostile ones expand without end
        raise self.error("no entity declarations", name)
