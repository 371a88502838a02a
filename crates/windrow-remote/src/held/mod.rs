//! What of an object is here already: on disk or in memory.
