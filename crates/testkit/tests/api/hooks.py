"""What schemathesis cannot send by itself."""

import schemathesis

# An archive is bytes; without this, the operation would be left out.
schemathesis.serializer.alias("application/zip", "application/octet-stream")
