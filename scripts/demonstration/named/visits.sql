-- name: record_visit :batch
-- Records a visit of a place, exactly once for each Idempotency-Key, and returns the last visits there.
-- for: *
-- key: required
-- param place: int(1..)
-- param note: text(200) = null
-- error NO_SUCH_PLACE: 404 There is no such place.
-- expect: affected_rows = 1 else NO_SUCH_PLACE
insert into play.visit (place, note) select id, :note from place where id = :place;
-- answer
select v.id, p.name, v.note, v.visited_at
  from play.visit v
  join place p on p.id = v.place
 where v.place = :place
 order by v.id desc
 limit 5;
