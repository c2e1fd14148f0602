"""A Django site with a function for jobs of type FUNCTION. It charges an order, once for each job."""

import json
import os
import uuid

from django.conf import settings
from django.core.management import execute_from_command_line
from django.http import HttpRequest, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from standardwebhooks import Webhook

from once import once

settings.configure(SECRET_KEY=uuid.uuid4().hex, ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"])
webhook = Webhook(os.environ["WEBHOOK_SECRET"])


def refusal(status: int, code: str, message: str) -> JsonResponse:
    return JsonResponse({"errorCode": code, "message": message}, status=status)


@csrf_exempt  # the signature takes the place of the token
@require_POST
def charge(request: HttpRequest) -> JsonResponse:
    try:
        headers = {name.lower(): value for name, value in request.headers.items()}
        webhook.verify(request.body, headers, json_parse=False)  # the body as it was sent
    except Exception as error:  # a header may be broken in many ways
        return refusal(401, "SHOP.BAD_SIGNATURE", str(error))
    data = json.loads(request.body or b"{}")
    match data:
        case {"order": str(order), "cents": int(cents)}:
            # The id of the attempt, which is signed too, is <jobId>.<attempt>.
            job_id = request.headers["webhook-id"].split(".")[0]
            return JsonResponse(once(job_id, lambda: {"receipt": str(uuid.uuid4()), "order": order, "cents": cents}))
        case _:
            return refusal(400, "SHOP.BAD_ORDER", 'the data has to be {"order": "…", "cents": …}')


urlpatterns = [path("charge", charge)]

if __name__ == "__main__":
    address = f"{os.environ.get('HOST', '0.0.0.0')}:{os.environ.get('PORT', '8080')}"
    execute_from_command_line(["main.py", "runserver", "--noreload", "--skip-checks", address])
