"""An operator in a few lines with kr8s: it takes care of widgets until the last one is gone.

For each widget it sets a finalizer, makes a config map, writes the status; when the widget is deleted it
takes the config map away and lets go. Prints what it did as a JSON list.
"""

import asyncio
import json
import sys

import kr8s
from kr8s.asyncio.objects import ConfigMap, new_class

TIMEOUT = 60
FINALIZER = "example.org/care"
Widget = new_class("Widget", "example.org/v1", asyncio=True, namespaced=True, scalable=False)


async def reconcile(api, widget, did):
    """One look at a widget; true when it is gone for good."""
    meta = widget.metadata
    finalizers = list(meta.get("finalizers", []))
    name = f"of-{meta.name}"
    if "deletionTimestamp" in meta:
        if FINALIZER not in finalizers:
            return False
        owned = await ConfigMap({"metadata": {"name": name, "namespace": "default"}}, api=api)
        await owned.delete()
        finalizers.remove(FINALIZER)
        did.append(["let go", meta.name])
        await widget.patch({"metadata": {"finalizers": finalizers}})
        return True
    if FINALIZER not in finalizers:
        await widget.patch({"metadata": {"finalizers": [*finalizers, FINALIZER]}})
        did.append(["held", meta.name])
        return False
    if widget.raw.get("status", {}).get("phase") == "Ready":
        return False
    resource = {
        "metadata": {"name": name, "namespace": "default"},
        "data": {"size": widget.spec.size},
    }
    await (await ConfigMap(resource, api=api)).create()
    await widget.patch({"status": {"phase": "Ready"}}, subresource="status")
    did.append(["ready", meta.name])
    return False


async def main():
    """Takes the kubeconfig and how many widgets will come and go."""
    api = await kr8s.asyncio.api(kubeconfig=sys.argv[1])
    left = int(sys.argv[2])
    did = []
    async for event, widget in api.watch(Widget, namespace="default"):
        if event in ("ADDED", "MODIFIED") and await reconcile(api, widget, did):
            left -= 1
        if left == 0:
            break
    json.dump(did, sys.stdout)


asyncio.run(asyncio.wait_for(main(), TIMEOUT))
