package example;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.standardwebhooks.Webhook;
import com.standardwebhooks.exceptions.WebhookVerificationException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.UUID;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpHeaders;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;

/** A function for jobs of type FUNCTION. It charges an order, once for each job. */
@RestController
public class ChargeController {
    record Order(String order, Long cents) {}

    record Receipt(String receipt, String order, long cents) {}

    private final Webhook webhook;
    private final Receipts receipts;
    private final ObjectMapper json;

    ChargeController(@Value("${WEBHOOK_SECRET}") String secret, Receipts receipts, ObjectMapper json) {
        this.webhook = new Webhook(secret);
        this.receipts = receipts;
        this.json = json;
    }

    /** The body stays bytes: the signature is over it as it was sent. */
    @PostMapping("/charge")
    ResponseEntity<?> charge(@RequestHeader HttpHeaders headers, @RequestBody(required = false) byte[] bytes) throws IOException {
        String body = bytes == null ? "" : new String(bytes, StandardCharsets.UTF_8);
        try {
            webhook.verify(body, headers);
        } catch (WebhookVerificationException | RuntimeException e) { // a header may be broken in many ways
            return refusal(401, "SHOP.BAD_SIGNATURE", e.getMessage());
        }
        Order order = read(body);
        if (order == null || order.order() == null || order.cents() == null) {
            return refusal(400, "SHOP.BAD_ORDER", "the data has to be {\"order\": \"…\", \"cents\": …}");
        }
        // The id of the attempt, which is signed too, is <jobId>.<attempt>.
        String jobId = headers.getFirst("webhook-id").split("\\.")[0];
        return ResponseEntity.ok(receipts.once(jobId, () -> receipt(order)));
    }

    private static Receipt receipt(Order order) {
        return new Receipt(UUID.randomUUID().toString(), order.order(), order.cents());
    }

    private Order read(String body) {
        try {
            return json.readValue(body, Order.class);
        } catch (JsonProcessingException e) {
            return null;
        }
    }

    private static ResponseEntity<?> refusal(int status, String code, String message) {
        return ResponseEntity.status(status).body(Map.of("errorCode", code, "message", message));
    }
}
