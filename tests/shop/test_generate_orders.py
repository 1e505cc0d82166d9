import csv
from itertools import groupby
from operator import itemgetter

from testproject.shop.generate_orders import COLUMNS, CSV_PATH, LINES, order_lines


def test_shipped_file_is_what_the_generator_writes():
    with CSV_PATH.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert tuple(header) == COLUMNS
    assert [tuple(row) for row in rows] == list(order_lines())
    assert len(rows) == LINES


def test_lines_of_an_order_stand_together_and_name_a_product_once():
    orders = [key for key, _ in groupby(order_lines(), key=itemgetter(0))]
    assert len(orders) == len(set(orders))
    products = [(line[0], line[4]) for line in order_lines()]
    assert len(products) == len(set(products))
