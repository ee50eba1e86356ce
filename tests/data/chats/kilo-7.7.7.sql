CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer);
INSERT INTO session VALUES ('ses_dfb02dc92ffeAgyrFwvTl3DPTb', 'global', NULL, NULL, 'sunny-circuit', '/home/dev/ws', 'home/dev/ws', 'A title', '7.7.7', NULL, 0, 0, 0, NULL, NULL, 0.0, 3600, 120, 0, 0, 0, NULL, NULL, 'code', '{"id":"mock","providerID":"mock"}', 1795380028269, 1795380057597, NULL, NULL);
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL);
INSERT INTO message VALUES ('msg_204fd2b41001OirYG3k6gcISji', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380030273, 1795380044101, '{"role":"user","time":{"created":1795380030273},"agent":"code","model":{"providerID":"mock","modelID":"mock"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_204fd3372001PM7YzcthE03ZPf', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380032370, 1795380042716, '{"parentID":"msg_204fd2b41001OirYG3k6gcISji","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/home/dev/ws","root":"/"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"mock","providerID":"mock","time":{"created":1795380032370,"completed":1795380042711},"finish":"stop"}');
INSERT INTO message VALUES ('msg_204fd5e24001Q00o16LqzsVEIt', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380043300, 1795380057652, '{"role":"user","time":{"created":1795380043300},"agent":"code","model":{"providerID":"mock","modelID":"mock"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_204fd646b001h0jp6L3euA95oV', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380044907, 1795380054859, '{"parentID":"msg_204fd5e24001Q00o16LqzsVEIt","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/home/dev/ws","root":"/"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"mock","providerID":"mock","time":{"created":1795380044907,"completed":1795380054830},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_204fd8bbb001AuEK6sMdIxeDET', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380054971, 1795380057428, '{"parentID":"msg_204fd5e24001Q00o16LqzsVEIt","role":"assistant","mode":"code","agent":"code","path":{"cwd":"/home/dev/ws","root":"/"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"mock","providerID":"mock","time":{"created":1795380054971,"completed":1795380057426},"finish":"stop"}');
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL);
INSERT INTO part VALUES ('prt_204fd2e8a001uT0Hr0wHulRHMi', 'msg_204fd2b41001OirYG3k6gcISji', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380031166, 1795380031205, '{"type":"text","text":"[[think]] think"}');
INSERT INTO part VALUES ('prt_204fd573e0017ERr46zQUuaC2Y', 'msg_204fd3372001PM7YzcthE03ZPf', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380041554, 1795380041573, '{"type":"step-start","time":{"start":1795380040306}}');
INSERT INTO part VALUES ('prt_204fd5836001DmPpIk4OEWvU7U', 'msg_204fd3372001PM7YzcthE03ZPf', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380041782, 1795380042034, '{"type":"text","text":"The answer.","time":{"start":1795380041782,"end":1795380042010}}');
INSERT INTO part VALUES ('prt_204fd5b6a001O8X8X6ljAWG0aD', 'msg_204fd3372001PM7YzcthE03ZPf', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380042602, 1795380042639, '{"reason":"stop","type":"step-finish","time":{"start":1795380040306,"end":1795380042599,"elapsed":2294},"metrics":{"generation":17.436791630340018,"source":"computed"},"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_204fd5f810018U2Jn0t9br2mnp', 'msg_204fd5e24001Q00o16LqzsVEIt', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380043739, 1795380043741, '{"type":"text","text":"[[act]] act"}');
INSERT INTO part VALUES ('prt_204fd79e7001X6TPNyoy41DyZ3', 'msg_204fd646b001h0jp6L3euA95oV', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380050407, 1795380050409, '{"type":"step-start","time":{"start":1795380049419}}');
INSERT INTO part VALUES ('prt_204fd7a4f001FQlOMKDLAjcItz', 'msg_204fd646b001h0jp6L3euA95oV', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380050511, 1795380053799, '{"type":"tool","tool":"bash","callID":"call_d61b8b1e","state":{"status":"completed","input":{"command":"touch x","description":"Runs it"},"output":"(no output)","metadata":{"output":"(no output)","exit":0,"description":"Runs it","truncated":false,"approval":{"source":"manual"}},"title":"Runs it","time":{"start":1795380050633,"end":1795380053774}}}');
INSERT INTO part VALUES ('prt_204fd8996001xijgVUTLJeNmCp', 'msg_204fd646b001h0jp6L3euA95oV', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380054422, 1795380054450, '{"reason":"tool-calls","type":"step-finish","time":{"start":1795380049419,"end":1795380054415,"elapsed":4996},"metrics":{"generation":8.00640512409928,"source":"computed"},"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_204fd9339001MtuU2CeZ65EGjo', 'msg_204fd8bbb001AuEK6sMdIxeDET', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380056889, 1795380056891, '{"type":"step-start","time":{"start":1795380056383}}');
INSERT INTO part VALUES ('prt_204fd933d001H3UM3XSP0cmj2K', 'msg_204fd8bbb001AuEK6sMdIxeDET', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380056893, 1795380056902, '{"type":"text","text":"It has ended.","time":{"start":1795380056893,"end":1795380056899}}');
INSERT INTO part VALUES ('prt_204fd9500001xm1vyRSvDzl1EL', 'msg_204fd8bbb001AuEK6sMdIxeDET', 'ses_dfb02dc92ffeAgyrFwvTl3DPTb', 1795380057354, 1795380057368, '{"reason":"stop","type":"step-finish","time":{"start":1795380056383,"end":1795380057322,"elapsed":939},"metrics":{"generation":42.598509052183175,"source":"computed"},"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
