"""Query parameters that say how a visitor came, not what is asked for: names that independent lists agree on.

The table is our own, made of facts: a name is here when at least three of six independent families of lists call it
a tracker on every site (the browsers' own lists of Firefox, Brave and Safari; AdGuard; ClearURLs; the registry of
mpchadwick). Names that mean something on some site are left out even then: `__s`, which universities use, and with
fewer families `ref`, `referrer`, `source`, `from`, `s`, `t`, `mc`, `spm`, `cmpid`, `erid` and their like. A prefix is
here for nobody: no prefix has three families.
"""

from __future__ import annotations

from typing import Final

_UTM: Final = (
    "ad affiliate brand campaign campaignid channel cid content creative emcid emmid id keyword medium name place "
    "product pubreferrer reader referrer serial session siteid social social-type source supplier swu term umguk "
    "userid viz_id"
)
_HSA: Final = "acc ad cam grp kw la mt net ol src tgt ver"
_MTM: Final = "campaign cid content group keyword medium placement source"
_OTHERS: Final = (
    "__hsfp __hssc __hstc _branch_match_id _ga _gl _hsenc _kx _openstat action_object_map action_ref_map "
    "action_type_map dclid fb_action_ids fb_action_types fb_ref fb_source fbclid gbraid gclid gclsrc hsCtaTracking "
    "irclickid mc_cid mc_eid mkt_tok ml_subscriber ml_subscriber_hash msclkid oly_anon_id oly_enc_id pk_campaign "
    "rb_clickid s_cid srsltid twclid vero_conv vero_id wbraid wickedid yclid"
)

TRACKERS: Final = frozenset(
    [
        *(f"utm_{name}" for name in _UTM.split()),
        *(f"hsa_{name}" for name in _HSA.split()),
        *(f"mtm_{name}" for name in _MTM.split()),
        *_OTHERS.split(),
    ]
)
"""Names, compared with case as the lists do."""

NOT_ON: Final = {"mkt_tok": ("unsubscribe", "emailwebview")}
"""Trackers that are the address itself on paths holding one of these words (compared in lower case)."""


def tracks(name: str, path: str) -> bool:
    """Whether `name` is a tracker in the query of a URL with this path."""
    if name not in TRACKERS:
        return False
    return name not in NOT_ON or not any(word in path.lower() for word in NOT_ON[name])
