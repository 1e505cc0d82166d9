"""Settings of the shop. ``DATABASE_URL`` decides the database: SQLite when it is not set."""

from pathlib import Path
from typing import Any

import django
import environ  # type: ignore[import-untyped]  # it ships no types

BASE_DIR = Path(__file__).resolve().parent

env = environ.Env()

VAR_DIR = Path(env.str("SHOP_VAR_DIR", default=str(BASE_DIR / "var")))
"""Where the shop writes: its SQLite file, mails and invoices."""

DEBUG = env.bool("DEBUG", default=True)
SECRET_KEY = env.str("SECRET_KEY", default="demo-only-set-SECRET_KEY-anywhere-else")
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=["localhost", "127.0.0.1", "testserver"])


def _database() -> dict[str, Any]:
    VAR_DIR.mkdir(parents=True, exist_ok=True)
    database: dict[str, Any] = env.db_url(
        "DATABASE_URL", default=f"sqlite:///{VAR_DIR / 'db.sqlite3'}"
    )
    if database["ENGINE"] == "django.db.backends.sqlite3":
        # IMMEDIATE takes the write lock when a transaction begins, where SQLite still honours the
        # busy timeout; WAL lets readers go on meanwhile. With WAL, NORMAL outlives any crash of
        # the process, but may lose the last commits when the machine loses power.
        database["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;",
            **database.get("OPTIONS", {}),
        }
        # Threads share a test database only if it is a file.
        database["TEST"] = {"NAME": str(VAR_DIR / "test.sqlite3")}
    return database


DATABASES = {"default": _database()}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "backwave_django",
    "testproject.bench",
    "testproject.shop",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

ROOT_URLCONF = "testproject.urls"
STATIC_URL = "static/"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

MAIL_DIR = VAR_DIR / "mails"
INVOICE_DIR = VAR_DIR / "invoices"
DEFAULT_FROM_EMAIL = "shop@example.com"
_FILE_MAILS = "django.core.mail.backends.filebased.EmailBackend"
if django.VERSION >= (6, 1):
    MAILERS = {"default": {"BACKEND": _FILE_MAILS, "OPTIONS": {"file_path": str(MAIL_DIR)}}}
else:
    EMAIL_BACKEND = _FILE_MAILS
    EMAIL_FILE_PATH = str(MAIL_DIR)

BACKWAVE = {
    "GROUPS": {
        "default": {"QUEUES": ["critical", "default", "mail"], "POOL_SIZE": 8},
        "bulk": {"QUEUES": {"imports": 6, "reports": 1}, "POOL_SIZE": 4},
    },
    "SERVICES": "testproject.shop.services.register",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(threadName)s %(message)s"}
    },
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "backwave": {"handlers": ["stderr"], "level": env.str("BACKWAVE_LOG", default="INFO")}
    },
}
