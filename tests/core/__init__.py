"""Tests of the room that decides; nothing here touches a database, a thread or a clock."""
