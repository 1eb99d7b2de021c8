"""What a program does that was generated from the document: create an agent, a room and a message, upload a file, page,
follow and cancel. It passes mypy's strict rules without a cast."""

import io
import json
import sys
import time
from typing import TypeVar

import httpx_sse

from greenroom_client import AuthenticatedClient
from greenroom_client.api.agents import agents_change, agents_create
from greenroom_client.api.events import events_read
from greenroom_client.api.messages import messages_history, messages_post
from greenroom_client.api.rooms import rooms_cancel, rooms_create, rooms_list, rooms_show
from greenroom_client.api.uploads import uploads_create
from greenroom_client.models import (
    AgentSpec,
    AgentSpecPatch,
    Attachment,
    ContentDeltaEvent,
    EventPage,
    NewMessage,
    Problem,
    RoomSpec,
    StreamEndEvent,
    TextPart,
)
from greenroom_client.types import UNSET, File

T = TypeVar("T")


def found(answer: T | Problem | None) -> T:
    if answer is None or isinstance(answer, Problem):
        raise AssertionError(answer)
    return answer


url, token = sys.argv[1:]
client = AuthenticatedClient(base_url=url, token=token, raise_on_unexpected_status=True)

agent = found(agents_create.sync(client=client, body=AgentSpec(name="generated", provider="scripted")))
room = found(rooms_create.sync(client=client, body=RoomSpec(name="generated", agents=[agent.id])))
upload = found(uploads_create.sync(client=client, name="a.txt", body=File(payload=io.BytesIO(b"hello"))))
assert upload.bytes_ == 5, upload
attachment = Attachment(name=upload.name, media_type=upload.media_type, url=upload.url)
# Only stored: the scripted agent reads a command to its end, which would be the list of files.
found(messages_post.sync(room.id, client=client, body=NewMessage(text="Look", attachments=[attachment], run=False)))
new = NewMessage(text="!count 5 1")
found(messages_post.sync(room.id, client=client, body=new, idempotency_key="generated-1"))

# The stream of the room, until the answer is complete.
text, seen, deadline = "", 0, time.monotonic() + 60
with httpx_sse.connect_sse(client.get_httpx_client(), "GET", f"/api/rooms/{room.id}/events", params={"after": "0"}) as stream:
    for frame in stream.iter_sse():
        assert time.monotonic() < deadline, text
        if frame.event == "content_delta":
            text += ContentDeltaEvent.from_dict(json.loads(frame.data)).data.delta
        if frame.event == "stream_end":
            end = StreamEndEvent.from_dict(json.loads(frame.data))
            seen = end.seq
            assert end.data.response_text == text, end
            break
assert text == "1 2 3 4 5", text

# The same in pages.
after, pages = "0", list[int]()
while len(pages) < seen:
    page = found(events_read.sync(room.id, client=client, after=after, limit=3))
    assert isinstance(page, EventPage) and page.events, page
    pages += [event.seq for event in page.events]
    after = f"{page.epoch}-{pages[-1]}"
assert pages == list(range(1, len(pages) + 1)), pages

history = found(messages_history.sync(room.id, client=client, since="0", limit=10))
parts = [part for message in history.messages for part in message.parts]
assert any(isinstance(part, TextPart) and part.text == text for part in parts), parts

slow = found(messages_post.sync(room.id, client=client, body=NewMessage(text="!count 1000 1000")))
stopped = found(rooms_cancel.sync(room.id, client=client))
assert (stopped.count, stopped.runs[0].id) == (1, slow.runs[0].id), stopped

names, before = list[str](), ""
while True:
    rooms = found(rooms_list.sync(client=client, limit=1, before=before or UNSET))
    names += [listed.name for listed in rooms.rooms]
    if not isinstance(rooms.next_, str):
        break
    before = rooms.next_
assert "generated" in names, names

changed = found(agents_change.sync(agent.id, client=client, body=AgentSpecPatch(name="generated again", model=None)))
assert changed.name == "generated again", changed
# A type of event that was added later is skipped, not an error.
envelope = {"id": str(agent.id), "room_id": str(room.id), "seq": 1, "run_id": None, "agent_id": None, "created_at": page.events[0].created_at.isoformat()}
later = EventPage.from_dict({"epoch": page.epoch, "head": 1, "events": [{**envelope, "type": "added_later", "data": {}}]})
assert later.events[0].type_ == "added_later", later
missing = rooms_show.sync(agent.id, client=client)
assert isinstance(missing, Problem) and missing.code == "not_found", missing
