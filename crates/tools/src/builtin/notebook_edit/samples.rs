//! Notebooks for examples and tests: the original and its expected versions.

pub(super) const NOTEBOOK: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "c1",
   "outputs": [{"output_type": "stream", "text": "1"}],
   "source": [
    "print(1)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "c2",
   "source": "# t"
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;

pub(super) const REPLACED: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": null,
   "id": "c1",
   "outputs": [],
   "source": [
    "print(2)\n",
    "print(3)"
   ]
  },
  {
   "cell_type": "markdown",
   "id": "c2",
   "source": "# t"
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;

pub(super) const DELETED: &str = r##"{
 "cells": [
  {
   "cell_type": "code",
   "execution_count": 1,
   "id": "c1",
   "outputs": [{"output_type": "stream", "text": "1"}],
   "source": [
    "print(1)"
   ]
  }
 ],
 "nbformat": 4,
 "nbformat_minor": 5,
 "odd": 1.50
}
"##;
