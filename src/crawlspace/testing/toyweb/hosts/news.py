"""`news.shop.test`: an archive by date that looks like a calendar but ends, with a text of its own for each day."""

from __future__ import annotations

from crawlspace.testing.toyweb.atlas import Atlas
from crawlspace.testing.toyweb.prose import Sheet

YEAR = 2025


def draw(atlas: Atlas) -> None:
    origin = atlas.host("news.shop.test")
    extent = atlas.recipe.extent
    months = [f"{origin}/{YEAR}/{month:02}/" for month in range(1, extent.months + 1)]
    days = [f"{month}{day:02}/" for month in months for day in range(1, extent.days + 1)]
    for place, day in enumerate(days):
        beside = days[max(place - 1, 0) : place] + days[place + 1 : place + 2]
        sheet = Sheet(
            f"News of {day[-11:-1]}", atlas.near([*beside, f"{origin}/"]), lead=f"What happened on {day[-11:-1]}."
        )
        atlas.page(day, sheet)
    for place, month in enumerate(months):
        inside = days[place * extent.days : (place + 1) * extent.days]
        atlas.page(month, Sheet(f"News of {month[-8:-1]}", atlas.near(inside)))
    atlas.page(f"{origin}/", Sheet("The news", atlas.near(months)))
    atlas.front(f"{origin}/")
