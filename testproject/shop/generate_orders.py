"""Writes the order lines that the shop ships: ``python -m testproject.shop.generate_orders``.

The file is the same on every machine and every Python: choices come from hashes, not from a
random generator.
"""

import csv
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

CSV_PATH = Path(__file__).resolve().parent / "data" / "orders.csv"
LINES = 2_000
CUSTOMERS = 400
OPENING = datetime(2026, 1, 5, 8, tzinfo=UTC)

COLUMNS = ("order", "placed_at", "customer", "email", "sku", "product", "quantity", "unit_price")

FIRST_NAMES = """
Aino Amara Anouk Bela Chiara Daan Dilara Emil Esra Femke Finn Gesa Hamid Ines Ivo Jana
Jonas Kaja Kofi Lea Levin Luca Maël Malin Mira Nadia Nils Noor Olga Oskar Paula Petr
Quentin Rafael Rosa Samira Selin Sven Tariq Thea Tomasz Uma Viktor Wanda Xenia Yara Yusuf
Zoë
"""
LAST_NAMES = """
Acker Amsler Bachmann Bernasconi Brunner Conti Dubois Egger Eriksson Favre Fischer Frei
Gerber Graf Haas Horvat Huber Ito Jansen Kaya Keller Kowalski Künzli Lang Lindqvist Meier
Moreau Müller Novak Okafor Pereira Peter Ramos Rossi Roth Schmid Silva Steiner Suter
Tanaka Vogel Weber Widmer Zimmermann
"""
PRODUCTS = (
    ("BK-1001", "City bicycle, 7 gears", "749.00"),
    ("BK-1002", "Touring bicycle, 21 gears", "1190.00"),
    ("BK-1003", "Children's bicycle, 20 inch", "329.00"),
    ("TY-2001", "Tyre 37-622, puncture resistant", "34.90"),
    ("TY-2002", "Inner tube 28 inch", "6.50"),
    ("TY-2003", "Rim tape, pair", "4.20"),
    ("LT-3001", "Front light, 60 lux", "54.00"),
    ("LT-3002", "Rear light, with brake light", "29.90"),
    ("LT-3003", "Reflector set", "9.80"),
    ("BR-4001", "Brake pads, pair", "11.40"),
    ("BR-4002", "Brake cable, 2 m", "5.60"),
    ("DR-5001", "Chain, 8-speed", "18.90"),
    ("DR-5002", "Cassette 11-32", "32.50"),
    ("DR-5003", "Chain oil, 100 ml", "8.90"),
    ("SD-6001", "Saddle, gel", "44.00"),
    ("SD-6002", "Seat post 27.2 mm", "24.90"),
    ("BG-7001", "Pannier, 20 l, waterproof", "69.00"),
    ("BG-7002", "Handlebar bag", "39.50"),
    ("HL-8001", "Helmet, medium", "59.00"),
    ("HL-8002", "Helmet, large", "59.00"),
    ("LK-9001", "Folding lock, 90 cm", "89.00"),
    ("TL-9501", "Multi-tool, 16 functions", "27.00"),
    ("TL-9502", "Floor pump with gauge", "38.00"),
    ("TL-9503", "Patch kit", "3.90"),
)
_UMLAUTS = str.maketrans({"ä": "ae", "ë": "e", "ö": "oe", "ü": "ue"})

T = TypeVar("T")


def number(key: str, below: int) -> int:
    """A number from 0 to ``below`` - 1 that only ``key`` decides."""
    return int.from_bytes(sha256(key.encode()).digest()[:8]) % below


def choice(key: str, among: Sequence[T]) -> T:
    """One of ``among`` that only ``key`` decides."""
    return among[number(key, len(among))]


def customer(index: int) -> tuple[str, str]:
    """Name and mail address of a customer."""
    first, last = (
        choice(f"first {index}", FIRST_NAMES.split()),
        choice(f"last {index}", LAST_NAMES.split()),
    )
    local = f"{first}.{last}".lower().translate(_UMLAUTS)
    return f"{first} {last}", f"{local}.{index}@example.com"


def order_lines() -> Iterator[tuple[str, ...]]:
    """Exactly ``LINES`` rows, order by order; an order has one to four lines."""
    made, order, placed_at = 0, 0, OPENING
    while made < LINES:
        order += 1
        placed_at += timedelta(minutes=1 + number(f"gap {order}", 240))
        name, email = customer(number(f"customer {order}", CUSTOMERS))
        size = min(1 + number(f"size {order}", 4), LINES - made)
        first = number(f"product {order}", len(PRODUCTS))
        for line in range(size):
            sku, product, price = PRODUCTS[(first + 5 * line) % len(PRODUCTS)]
            quantity = 1 + number(f"quantity {order} {line}", 12) // 8
            row = (f"W-{order:05d}", placed_at.isoformat(), name, email)
            yield (*row, sku, product, str(quantity), price)
        made += size


def main() -> None:
    """Write the file."""
    CSV_PATH.parent.mkdir(exist_ok=True)
    with CSV_PATH.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(order_lines())


if __name__ == "__main__":
    main()
