-- name: places :many
-- Searches the principal places of time zones. Every filter is optional.
-- for: *
-- param country: text(/[A-Z]{2}/, 2) = null
-- param prefix: text(60) = null
-- param sort: choice(north: latitude desc, id | south: latitude, id | name: name, id) = name
-- param page_size: int(1..100) = 20
select id, name, country, timezone, latitude, longitude, remark
  from place
 where (:country is null or country = :country)
   and (:prefix is null or name like concat(:prefix, '%'))
 order by :sort
 limit :page_size;

-- name: country :one
-- One country, with its name in a language.
-- for: *
-- param code: text(/[A-Z]{2}/, 2)
-- param language: text(/[a-z]{2,3}/, 3) = 'en'
select c.code, n.name, c.language as spoken,
       (select count(*) from place p where p.country = c.code) as places
  from country c
  join country_name n on n.code = c.code and n.language = :language
 where c.code = :code;
