"""A reply of the broker in which a byte was changed on the wire is asked for again."""

import pytest

from muster_bus.broker.embedded import Server
from muster_bus.broker.queues import ack_wait_of, request_queue
from muster_bus.broker.topology import Provisioning, provision
from muster_testing import running_proxy
from tests.bus.conftest import Connect
from tests.guards import guards

SETTINGS = Provisioning(lease_seconds=1, ack_wait_seconds=1)
CHANGED_REPLIES = (
    (b'"type":"io.nats.jetstream', b'"type":"io.nats.jetstrea\xfc'),  # no text any more
    (b'"config":{', b'"config";{'),  # no JSON any more
    (b'"config":{', b'"konfig":{'),  # JSON that lacks what is looked for
)


@guards(
    "libs/bus/muster_bus/broker/queues.py",
    "except UNREADABLE as error:",
    rule="I1",
    replace="except EOFError as error:",
)
@pytest.mark.parametrize("case", range(len(CHANGED_REPLIES)))
async def test_a_reply_of_the_broker_with_a_changed_byte_does_not_end_a_service_that_starts(
    broker: Server, connect: Connect, case: int
):
    await provision(await connect(broker.url), SETTINGS, ["t"], ["a"])
    async with running_proxy(broker.port) as proxy:
        bus = await connect(proxy.url)
        proxy.replace_in_replies(*CHANGED_REPLIES[case])

        assert await ack_wait_of(bus, request_queue("t")) == SETTINGS.lease_seconds
        assert not proxy.has_replacement_left
