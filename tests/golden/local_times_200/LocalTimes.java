// Answers how java.time reads partition times, with the two formatters that Flink 2.2.1's
// DefaultPartTimeExtractor builds and with DateTimeFormatter.ofPattern (PC-T13, PC-T15).
// Input: lines "formatter TAB text", the formatter empty for Flink's own form. Output: the local
// time, or "-". Run: java LocalTimes.java < cases.tsv > answers.txt

import static java.time.temporal.ChronoField.*;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.DateTimeException;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.format.DateTimeFormatter;
import java.time.format.DateTimeFormatterBuilder;
import java.time.format.ResolverStyle;
import java.time.format.SignStyle;
import java.util.Locale;

class LocalTimes {
    static DateTimeFormatterBuilder date() {
        return new DateTimeFormatterBuilder()
                .appendValue(YEAR, 1, 10, SignStyle.NORMAL).appendLiteral('-')
                .appendValue(MONTH_OF_YEAR, 1, 2, SignStyle.NORMAL).appendLiteral('-')
                .appendValue(DAY_OF_MONTH, 1, 2, SignStyle.NORMAL);
    }

    static final DateTimeFormatter DATE = lenient(date());
    static final DateTimeFormatter TIMESTAMP = lenient(date()
            .optionalStart().appendLiteral(' ')
            .appendValue(HOUR_OF_DAY, 1, 2, SignStyle.NORMAL).appendLiteral(':')
            .appendValue(MINUTE_OF_HOUR, 1, 2, SignStyle.NORMAL).appendLiteral(':')
            .appendValue(SECOND_OF_MINUTE, 1, 2, SignStyle.NORMAL)
            .optionalStart().appendFraction(NANO_OF_SECOND, 1, 9, true).optionalEnd()
            .optionalEnd());

    static DateTimeFormatter lenient(DateTimeFormatterBuilder builder) {
        return builder.toFormatter(Locale.ROOT).withResolverStyle(ResolverStyle.LENIENT);
    }

    static LocalDateTime read(String text, DateTimeFormatter whole, DateTimeFormatter date) {
        try {
            return LocalDateTime.parse(text, whole);
        } catch (DateTimeException noTime) {
            return LocalDate.parse(text, date).atStartOfDay();
        }
    }

    public static void main(String[] ignored) throws Exception {
        var lines = new BufferedReader(new InputStreamReader(System.in, "UTF-8"));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            try {
                DateTimeFormatter given = parts[0].isEmpty()
                        ? null : DateTimeFormatter.ofPattern(parts[0], Locale.ROOT);
                LocalDateTime time = given == null
                        ? read(parts[1], TIMESTAMP, DATE) : read(parts[1], given, given);
                System.out.println(time.getYear() > 9999 || time.getYear() < 1 ? "-" : time);
            } catch (DateTimeException | IllegalArgumentException refused) {
                System.out.println("-");
            }
        }
    }
}
