"""The storage contract, clause by clause, for every store.

A store joins the list in ``conftest.py`` or does not ship. A test takes the ``store`` itself and
``observe``, which reads the whole visible state in the same shape from each of them.
"""
