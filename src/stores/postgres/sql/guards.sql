-- Rows of `blocks`, `log`, `marks`, `artifacts` and `artifact_chunks` are never changed or removed: triggers refuse it.
-- The one exception is erasure, which replaces the bytes of a content by null. Triggers cost nothing on insertion.

CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  RAISE EXCEPTION 'rows of % are never changed or removed', TG_TABLE_NAME USING ERRCODE = 'TP003';
END $body$;
CREATE FUNCTION refuse_change_except_erasure() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
  OLD.bytes := NULL;
  IF NEW IS DISTINCT FROM OLD THEN
    RAISE EXCEPTION 'rows of % are never changed, only erased', TG_TABLE_NAME USING ERRCODE = 'TP003';
  END IF;
  RETURN NEW;
END $body$;

DO $body$
DECLARE
  v_table text;
BEGIN
  FOREACH v_table IN ARRAY ARRAY[${APPEND_ONLY_TABLES}] LOOP
    EXECUTE format('CREATE TRIGGER guard_rows BEFORE UPDATE OR DELETE ON %I
      FOR EACH ROW EXECUTE FUNCTION refuse_change()', v_table);
    EXECUTE format('CREATE TRIGGER guard_table BEFORE TRUNCATE ON %I
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', v_table);
  END LOOP;
  FOREACH v_table IN ARRAY ARRAY[${ERASABLE_TABLES}] LOOP
    EXECUTE format('CREATE TRIGGER guard_changes BEFORE UPDATE ON %I
      FOR EACH ROW EXECUTE FUNCTION refuse_change_except_erasure()', v_table);
    EXECUTE format('CREATE TRIGGER guard_rows BEFORE DELETE ON %I
      FOR EACH ROW EXECUTE FUNCTION refuse_change()', v_table);
    EXECUTE format('CREATE TRIGGER guard_table BEFORE TRUNCATE ON %I
      FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()', v_table);
  END LOOP;
END $body$;
