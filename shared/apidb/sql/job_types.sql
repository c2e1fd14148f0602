-- name: JobTypesLearn :execrows
-- An owner whose types fill its share keeps those that it has. A type without a definition keeps the one that it has.
insert into job_types (owner_id, name, definition)
select l.owner_id, l.name, l.definition
from (
    select unnest(@owner_ids::text[]) as owner_id, unnest(@names::text[]) as name,
        unnest(@definitions::json[]) as definition
) as l
where exists (select from job_types t where t.owner_id = l.owner_id and t.name = l.name)
   or (select count(*) from job_types t where t.owner_id = l.owner_id) < @most::bigint
on conflict (owner_id, name) do update set definition = excluded.definition, updated_at = now()
where excluded.definition is not null and excluded.definition::text is distinct from job_types.definition::text;

-- name: JobTypesNamed :many
select owner_id, definition from job_types where owner_id = any (@owner_ids::text[]) and name = @name order by owner_id desc;

-- Of the types of a name, the owner's comes before that of all owners.
-- name: JobTypesOf :many
select owner_id, name, definition from job_types
where @everyone::boolean or owner_id = any (@owner_ids::text[])
order by name, owner_id desc
limit @most;

-- name: JobTypeForget :execrows
delete from job_types where owner_id = @owner_id and name = @name;
