<?php
// Records a purchase exactly once, and lists the customer's purchases. PHP 8.1 or later, without extensions.

/** Returns the gateway's reply. With a key, a write may be repeated even if its reply was lost. */
function ask(string $sql, array $params, ?string $key = null, int $attempts = 6): array
{
    $url = (getenv('DBHTTPD_URL') ?: 'http://127.0.0.1:9090') . '/v1/query';
    $headers = ['Content-Type: application/json'];
    if (getenv('DBHTTPD_TOKEN')) $headers[] = 'Authorization: Bearer ' . getenv('DBHTTPD_TOKEN');
    if ($key !== null) $headers[] = "Idempotency-Key: $key";
    $context = stream_context_create(['http' => [
        'method' => 'POST', 'header' => $headers, 'timeout' => 40, 'ignore_errors' => true,
        'content' => json_encode(['sql' => $sql, 'params' => $params, 'rows' => 'object']),
    ]]);
    for ($attempt = 1; ; $attempt++) {
        $stream = @fopen($url, 'r', false, $context);
        $head = $stream ? stream_get_meta_data($stream)['wrapper_data'] : [''];
        $reply = $stream ? json_decode(stream_get_contents($stream), true) : null;
        $status = (int) substr($head[0], 9, 3);
        if ($status === 200 && is_array($reply)) return $reply;
        // Without a problem there was no reply, or a part of one, or the page of a proxy.
        $problem = is_array($reply) && isset($reply['code'])
            ? $reply + ['retryable' => false]
            : ['code' => 'REPLY_LOST', 'outcome' => 'unknown', 'retryable' => $key !== null];
        if (!$problem['retryable'] || $attempt === $attempts) {
            throw new RuntimeException("$problem[code] ($problem[outcome]): " . ($problem['detail'] ?? ''));
        }
        $isSaid = preg_match('/^Retry-After: (\d+)/mi', implode("\n", $head), $found);
        $wait = $isSaid ? (float) $found[1] : $attempt * 0.2;
        usleep((int) ($wait * 1e6));
    }
}

[, $order, $customer, $amount] = $argv;
try {
    ask('insert into purchase (customer, amount) values (?, ?)', [$customer, $amount], key: $order);
    foreach (ask('select id, amount from purchase where customer = ? order by id', [$customer])['rows'] as $row) {
        echo "$customer $row[amount]\n";
    }
} catch (RuntimeException $failure) {
    fwrite(STDERR, $failure->getMessage() . "\n");
    exit(1);
}
