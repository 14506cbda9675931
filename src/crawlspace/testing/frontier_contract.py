"""What every frontier must do, whatever database it lives in: inherit the suite, open a store, run it with pytest.

    class TestMyFrontier(FrontierContract):
        async def open(self, settings):
            return await MyFrontier.open(...)

Behaviour is specified here and nowhere else. A fault found in one backend first becomes a test of this suite. The
backend must take `now` from its caller, as embedded stores do.
"""

from __future__ import annotations

from crawlspace.testing.frontier_contract_budget import BudgetSuite
from crawlspace.testing.frontier_contract_claims import ClaimSuite
from crawlspace.testing.frontier_contract_company import CompanySuite
from crawlspace.testing.frontier_contract_crowds import CrowdSuite
from crawlspace.testing.frontier_contract_groups import GroupSuite
from crawlspace.testing.frontier_contract_leases import LeaseSuite
from crawlspace.testing.frontier_contract_ledger import LedgerSuite
from crawlspace.testing.frontier_contract_settlements import SettlementSuite


class FrontierContract(
    LeaseSuite, ClaimSuite, SettlementSuite, LedgerSuite, GroupSuite, CrowdSuite, BudgetSuite, CompanySuite
):
    """The whole contract. It opens with two workers and one lost lease."""
