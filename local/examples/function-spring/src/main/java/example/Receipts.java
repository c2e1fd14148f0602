package example;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.UUID;
import java.util.function.Supplier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.stereotype.Component;

/**
 * The results of jobs. Here a file keeps each; in your database, a row with the job's id as its key, written in the
 * transaction of the work.
 */
@Component
class Receipts {
    private final Path folder;
    private final ObjectMapper json;

    Receipts(@Value("${RECEIPTS:receipts}") String folder, ObjectMapper json) {
        this.folder = Path.of(folder);
        this.json = json;
    }

    /** Returns the result of the first attempt of a job that had one. */
    JsonNode once(String jobId, Supplier<?> work) throws IOException {
        Path path = folder.resolve(jobId + ".json");
        if (Files.notExists(path)) {
            Files.createDirectories(folder);
            Path draft = folder.resolve(jobId + "." + UUID.randomUUID());
            json.writeValue(draft.toFile(), work.get());
            try {
                Files.createLink(path, draft);
            } catch (FileAlreadyExistsException e) {
                // Another attempt was faster: its result counts.
            }
            Files.delete(draft);
        }
        return json.readTree(path.toFile());
    }
}
