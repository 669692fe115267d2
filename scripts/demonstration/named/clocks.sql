-- name: clock_changes :many
-- The changes of the clocks of a time zone, page by page: `after` is the last `at` of the page before.
-- for: *
-- max_age: 1h
-- param timezone: text(60)
-- param after: datetime = null
-- param page_size: int(1..1000) = 10
select at, offset_seconds, is_dst, abbreviation
  from timezone_transition
 where timezone = :timezone and (:after is null or at > :after)
 order by at
 limit :page_size;
