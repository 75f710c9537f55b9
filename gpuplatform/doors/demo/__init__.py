"""The demo: invented teams and machines, a history played through the real scheduler.

Nothing here writes a result. Teams, quotas and nodes enter through the doors that everybody
uses; the past is submitted, admitted, evicted and metered by the product itself on a virtual
clock, so that every page, ledger and bill of the demo is what the product really does.
"""
