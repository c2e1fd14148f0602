import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;

/**
 * Inserts an order and, in the same transaction, the job that confirms it. JDBC_URL is the address of a database with an
 * outbox.
 */
public class Order {
    static class NothingToPay extends RuntimeException {}

    public static void main(String[] args) throws SQLException {
        try (Connection connection = DriverManager.getConnection(System.getenv("JDBC_URL"))) {
            connection.setAutoCommit(false);
            System.out.println(order(connection, 120));
            try {
                order(connection, 0);
            } catch (NothingToPay e) {
                // that order has neither a row nor a job
            }
        }
    }

    /** order inserts an order and enqueues its job. Either both are committed, or neither. */
    static String order(Connection connection, int total) throws SQLException {
        String payload = "{\"steps\": [{\"type\": \"LOG\", \"message\": \"paid " + total + "\"}]}";
        String options = "{\"tags\": [\"java\"], \"orderingKey\": \"customer-9\"}";
        try {
            String job;
            try (var enqueue = connection.prepareStatement("select jobweaver.enqueue('SIMULATION', ?::jsonb, ?::jsonb)")) {
                enqueue.setString(1, payload);
                enqueue.setString(2, options);
                try (var row = enqueue.executeQuery()) {
                    row.next();
                    job = row.getString(1);
                }
            }
            try (var insert = connection.prepareStatement("insert into orders (total, job_id) values (?, ?::uuid)")) {
                insert.setInt(1, total);
                insert.setString(2, job);
                insert.executeUpdate();
            }
            if (total == 0) {
                throw new NothingToPay();
            }
            connection.commit();
            return job;
        } catch (SQLException | RuntimeException e) {
            connection.rollback();
            throw e;
        }
    }
}
