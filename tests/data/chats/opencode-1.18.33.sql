CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL
        );
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
          `time_archived` integer
        );
CREATE INDEX `message_session_time_created_id_idx` ON `message` (`session_id`,`time_created`,`id`);
CREATE INDEX `part_message_id_id_idx` ON `part` (`message_id`,`id`);
CREATE INDEX `part_session_idx` ON `part` (`session_id`);
CREATE INDEX `session_project_idx` ON `session` (`project_id`);
CREATE INDEX `session_workspace_idx` ON `session` (`workspace_id`);
CREATE INDEX `session_parent_idx` ON `session` (`parent_id`);
INSERT INTO session VALUES ('ses_dfd38c31fffelJ7VBa7t56uFlu','466744ccf8b95313e4e9a7467ef5811b980be404',NULL,NULL,'shiny-river','/home/dev/ws','','Fake title','1.18.33',NULL,0,0,0,NULL,NULL,0.0,3600,120,0,0,0,NULL,NULL,'build','{"id":"fake-model","providerID":"fake"}',1795342941408,1795342995325,NULL,NULL);
INSERT INTO message VALUES ('msg_202c73e2a001RovVIfYMP2CIqQ','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342941738,1795342956755,'{"role":"user","time":{"created":1795342941738},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_202c73f62001Nh4KZytUw2w5Ou','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342942050,1795342956332,'{"parentID":"msg_202c73e2a001RovVIfYMP2CIqQ","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/ws","root":"/home/dev/ws"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1795342942050,"completed":1795342956322},"finish":"stop"}');
INSERT INTO message VALUES ('msg_202c77cfd001WhK1NRHNUCcZ4T','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342957821,1795342979157,'{"role":"user","time":{"created":1795342957821},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[{"file":"shell-ran.txt","patch":"Index: shell-ran.txt\n===================================================================\n--- shell-ran.txt\t\n+++ shell-ran.txt\t\n","additions":0,"deletions":0,"status":"added"}]}}');
INSERT INTO message VALUES ('msg_202c77d200015IaknRDTpRTuV4','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342957856,1795342978821,'{"parentID":"msg_202c77cfd001WhK1NRHNUCcZ4T","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/ws","root":"/home/dev/ws"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1795342957856,"completed":1795342978820},"finish":"tool-calls"}');
INSERT INTO message VALUES ('msg_202c7cf09001onCKdKWD8gR9jN','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342978825,1795342979091,'{"parentID":"msg_202c77cfd001WhK1NRHNUCcZ4T","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/ws","root":"/home/dev/ws"},"cost":0,"tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1795342978825,"completed":1795342979090},"finish":"stop"}');
INSERT INTO message VALUES ('msg_202c7f2340019qYPzUHWHBj0wZ','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342987828,1795342988048,'{"role":"user","time":{"created":1795342987828},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_202c7f246001m52w5zYPRxNldD','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342987846,1795342988239,'{"parentID":"msg_202c7f2340019qYPzUHWHBj0wZ","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/ws","root":"/home/dev/ws"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1795342987846,"completed":1795342988236},"error":{"name":"APIError","data":{"message":"Incorrect API key provided: fake. (scripted 401)","statusCode":401,"isRetryable":false,"responseHeaders":{"content-length":"149","content-type":"application/json","date":"Sun, 22 Nov 2026 10:23:08 GMT","server":"BaseHTTP/0.6 Python/3.11.7"},"responseBody":"{\"error\": {\"message\": \"Incorrect API key provided: fake. (scripted 401)\", \"type\": \"invalid_request_error\", \"param\": null, \"code\": \"invalid_api_key\"}}","metadata":{"url":"http://127.0.0.1:18911/v1/chat/completions"}}}}');
INSERT INTO message VALUES ('msg_202c80f2c001XxRUIYC25kszhV','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342995244,1795342995336,'{"role":"user","time":{"created":1795342995244},"agent":"build","model":{"providerID":"fake","modelID":"fake-model"},"summary":{"diffs":[]}}');
INSERT INTO message VALUES ('msg_202c80f4f001Oi9AHlpz8s2Lte','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342995279,1795343000939,'{"parentID":"msg_202c80f2c001XxRUIYC25kszhV","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/ws","root":"/home/dev/ws"},"cost":0,"tokens":{"input":0,"output":0,"reasoning":0,"cache":{"read":0,"write":0}},"modelID":"fake-model","providerID":"fake","time":{"created":1795342995279,"completed":1795343000938},"error":{"name":"MessageAbortedError","data":{"message":"Aborted"}}}');
INSERT INTO part VALUES ('prt_202c73e53001XMjO8Znn6Zec3w','msg_202c73e2a001RovVIfYMP2CIqQ','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342941792,1795342941804,'{"type":"text","text":"[[hello]] go hello"}');
INSERT INTO part VALUES ('prt_202c76f98001YnZGm3QYrNAuJO','msg_202c73f62001Nh4KZytUw2w5Ou','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342954393,1795342954416,'{"snapshot":"f4b78d12e9394116c10d7ea2d162360b18db17b2","type":"step-start"}');
INSERT INTO part VALUES ('prt_202c76fb5001iX0J8voslThEIo','msg_202c73f62001Nh4KZytUw2w5Ou','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342954421,1795342954626,'{"type":"text","text":"Hello from the fake model. The work is done.","time":{"start":1795342954421,"end":1795342954606}}');
INSERT INTO part VALUES ('prt_202c774d3001yg1FUl0eUrbl1r','msg_202c73f62001Nh4KZytUw2w5Ou','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342955732,1795342955734,'{"reason":"stop","snapshot":"f4b78d12e9394116c10d7ea2d162360b18db17b2","type":"step-finish","tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_202c77cfd002Vbd6oarCv75ZI6','msg_202c77cfd001WhK1NRHNUCcZ4T','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342957832,1795342957836,'{"type":"text","text":"[[shell]] go shell"}');
INSERT INTO part VALUES ('prt_202c7808c001O4MobZ6X5KqSXp','msg_202c77d200015IaknRDTpRTuV4','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342958733,1795342958740,'{"snapshot":"f4b78d12e9394116c10d7ea2d162360b18db17b2","type":"step-start"}');
INSERT INTO part VALUES ('prt_202c780a50010xmAawDK8ps2lK','msg_202c77d200015IaknRDTpRTuV4','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342958757,1795342978684,'{"type":"tool","tool":"bash","callID":"call_ab6580cb","state":{"status":"completed","input":{"command":"touch shell-ran.txt; sleep 12; echo shell-finished"},"output":"shell-finished\n","metadata":{"output":"shell-finished\n","exit":0,"truncated":false},"title":"touch shell-ran.txt; sleep 12; echo shell-finished","time":{"start":1795342958829,"end":1795342978683}}}');
INSERT INTO part VALUES ('prt_202c7cebd001e58a4exJgwSFTP','msg_202c77d200015IaknRDTpRTuV4','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342978749,1795342978751,'{"reason":"tool-calls","snapshot":"2f3d68e68349307f75ec6b289c9e442b1c20b813","type":"step-finish","tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_202c7cefe001YQmQJYzaIK86Df','msg_202c77d200015IaknRDTpRTuV4','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342978814,1795342978817,'{"type":"patch","hash":"f4b78d12e9394116c10d7ea2d162360b18db17b2","files":["/home/dev/ws/shell-ran.txt"]}');
INSERT INTO part VALUES ('prt_202c7cf7f001GqLrhLSo4dqGsy','msg_202c7cf09001onCKdKWD8gR9jN','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342978943,1795342978945,'{"snapshot":"2f3d68e68349307f75ec6b289c9e442b1c20b813","type":"step-start"}');
INSERT INTO part VALUES ('prt_202c7cf82001FrUZbJtujiducK','msg_202c7cf09001onCKdKWD8gR9jN','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342978947,1795342979016,'{"type":"text","text":"The command has finished.","time":{"start":1795342978946,"end":1795342979014}}');
INSERT INTO part VALUES ('prt_202c7cff9001wVKssZqqKcaskE','msg_202c7cf09001onCKdKWD8gR9jN','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342979066,1795342979067,'{"reason":"stop","snapshot":"2f3d68e68349307f75ec6b289c9e442b1c20b813","type":"step-finish","tokens":{"total":1240,"input":1200,"output":40,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
INSERT INTO part VALUES ('prt_202c7f2350011MvykJqzCpY68O','msg_202c7f2340019qYPzUHWHBj0wZ','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342987833,1795342987836,'{"type":"text","text":"[[e401]] go e401"}');
INSERT INTO part VALUES ('prt_202c80f2d001BViLU09qFdDFnr','msg_202c80f2c001XxRUIYC25kszhV','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342995250,1795342995251,'{"type":"text","text":"[[slow]] go slow"}');
INSERT INTO part VALUES ('prt_202c80fd1001wsbd69cI9viX8K','msg_202c80f4f001Oi9AHlpz8s2Lte','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342995409,1795342995418,'{"snapshot":"2f3d68e68349307f75ec6b289c9e442b1c20b813","type":"step-start"}');
INSERT INTO part VALUES ('prt_202c80fdf001KvHREoc6sjc8Sh','msg_202c80f4f001Oi9AHlpz8s2Lte','ses_dfd38c31fffelJ7VBa7t56uFlu',1795342995423,1795343000937,'{"type":"text","text":"word1 word2 word3 word4 word5 word6 word7 word8 word9 word10 word11 word12 word13 word14 word15 word16 word17 word18 word19 word20 word21 word22 ","time":{"start":1795342995423,"end":1795343000935}}');
