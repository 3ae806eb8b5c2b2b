"""Names and values that are secrets, and those that only look like it."""

from typing import Final

SECRET_KEYS: Final = [
    "password",
    "kafka.sasl.jaas.config",
    "kafka.ssl.keystore.password",
    "kafka.ssl.keystore.key",
    "spark.hadoop.fs.s3a.secret.key",
    "spark.hadoop.fs.s3a.access.key",
    "spark.hadoop.fs.azure.account.key.lake.dfs.core.windows.net",
    "spark.hadoop.fs.azure.account.oauth2.client.secret.lake.dfs.core.windows.net",
    "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
    "spark.kubernetes.driverEnv.AWS_SECRET_ACCESS_KEY",
    "spark.kubernetes.authenticate.driver.oauthToken",
    "spark.ssl.keyPassword",
    "spark.authenticate.secret",
    "spark.sql.catalog.lake.token",
    *("accountKey", "cosmos.accountkey", "spark.cosmos.accountKey", "account_key", "authKey"),
    *("pass", "pwd", "PWD", "dbPass", "userPwd", "db_pwd", "es.net.http.auth.pass"),
    *("spark.es.net.http.auth.pass", "spark.sql.catalog.lake.jdbc.pass"),
    *("connectionString", "spark.eventhubs.connectionstring", "connection-string"),
    *("spark.redis.auth", "spark.databricks.pat", "sharedAccessSignature"),
    *("kafka.ssl.key.pem", "privateKeyPem", "jaasConfig", "keystoreKey", "sharedAccessKey"),
    *("PASSWORD", "passwd", "sfPassword", "pem_private_key", "clientSecret", "credentials"),
]
SHORT_WORDS: Final = ("pass", "pwd", "PWD")
"""Alone in a text, they are words: `PWD=/opt/spark`."""

PLAIN_KEYS: Final = [
    "path",
    "url",
    "key.column",
    "primaryKey",
    "kafka.bootstrap.servers",
    "spark.kubernetes.driver.secrets.credentials",
    "spark.kubernetes.driver.secretKeyRef.AWS_SECRET_ACCESS_KEY",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.hadoop.security.credential.provider.path",
    "spark.kubernetes.authenticate.driver.oauthTokenFile",
    "spark.security.credentials.kafka.enabled",
    "spark.sql.shuffle.partitions",
    "spark.ssl.keyStoreType",
    *("spark.authenticate", "spark.kubernetes.authenticate.driver.serviceAccountName"),
    *("spark.kubernetes.authenticate.caCertFile", "spark.authenticate.secret.driver.file"),
    *("passthrough", "passThrough", "bypass", "compass", "allow.bypass", "passes", "pass.count"),
    *("spark.sql.legacy.pattern", "spark.sql.parquet.pattern.enabled", "pattern", "spat"),
    *("spark.hadoop.fs.s3a.connection.maximum", "spark.hadoop.fs.s3a.connection.timeout"),
    *("tokenizer", "spark.ml.tokenizer.pattern", "tokens", "token.column", "secretName"),
    *("partitionKey", "keyColumn", "key", "recordKey", "sortKey", "shard.key", "foreignKey"),
    *("ssl.keystore.location", "spark.ssl.keyStore", "spark.ssl.trustStore", "keyFile"),
    *(
        "passwordFile",
        "password.file",
        "spark.x.tokenFile",
        "credentialsFile",
        "client.secret.file",
    ),
    *("spark.redis.auth.enabled", "auth", "redis.host", "databricks.path", "author.key.column"),
    *("ssl.certificate.pem", "ssl.ca.pem", "public.key.pem", "connection.uri", "connectionTimeout"),
    *("spark.executorEnv.GOOGLE_APPLICATION_CREDENTIALS", "signature", "spark.pwd.folder"),
    *("spark.redaction.regex", "spark.kubernetes.kerberos.tokenSecret.itemKey", "user", "path"),
]

JAVA_SECRETS: Final = [
    "-Djavax.net.ssl.trustStorePassword=hunter2",
    "-Xss2m -Djavax.net.ssl.keyStorePassword=hunter2 -Dx=y",
    "-Dpassword='hunter2'",
    '"-Ddb.pass=hunter2"',
    "-Xmx1g\n-Dapi.token=hunter2",
    "-Djavax.net.ssl.keyStorePassword=changeit",
]
JAVA_PLAIN: Final = [
    "-XX:+UseG1GC -Dlog4j2.configurationFile=/conf/log4j2.xml",
    "-Djavax.net.ssl.keyStore=/etc/ssl/keys.jks -Djavax.net.ssl.trustStoreType=PKCS12",
    "-Djavax.net.ssl.trustStorePassword=changeit",
    "-Dcom.sun.management.jmxremote.password.file=/etc/jmx/password",
    "-Djava.security.auth.login.config=/etc/jaas.conf -Ddb.password=${env:DB_PASSWORD}",
    "-Dio.netty.tryReflectionSetAccessible=true -Dbypass=1 -Dpassword=",
    "@/etc/secrets/java-options",
]

SECRET_ARGUMENTS: Final = [
    ["--password", "hunter2"],
    ["--topic", "orders", "--db-password", "hunter2"],
    ["--api-key=hunter2"],
    ["--dbPass", "hunter2"],
    ["db.password=hunter2"],
    ["-Dapi.token=hunter2"],
    ["--conf", "spark.redis.auth=hunter2"],
    ["--url", "jdbc:postgresql://u:hunter2@h/db"],
    ["jdbc:sqlserver://h;user=u;password=hunter2"],
    ["https://lake.blob.core.windows.net/c?sv=2024&sig=hunter2"],
    ["AccountName=lake;AccountKey=hunter2"],
    ["redis://:hunter2@cache:6379/0"],
]
PLAIN_ARGUMENTS: Final = [
    [],
    ["--password"],
    ["--password", "--verbose"],
    ["--ask-password", "--topic", "orders"],
    ["--password-file", "/run/secrets/db"],
    ["--credentials", "/etc/gcp/key.json"],
    ["--credentials=file:/etc/gcp/key.json"],
    ["--token", "$(API_TOKEN)"],
    ["--password=${env:DB_PASSWORD}"],
    ["--secret", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders"],
    ["--secret-name", "orders", "--token-bucket", "5", "--key-column", "id"],
    ["password", "secret"],
    ["--query", "select token from t where secret = 'a' and x=1"],
    ["--use-token=true", "--url", "jdbc:postgresql://u:$(DB_PASSWORD)@h/db"],
    ["--bypass", "yes", "--tokenizer=words", "abfss://lake@account.dfs.core.windows.net/c"],
]

SECRET_VARIABLES: Final = [
    *(("DB_PASSWORD", "hunter2"), ("PGPASSWORD", "hunter2"), ("MYSQL_PWD", "hunter2")),
    *(("DB_PASS", "hunter2"), ("API_TOKEN", "hunter2"), ("AWS_SECRET_ACCESS_KEY", "hunter2")),
    *(("REDISCLI_AUTH", "hunter2"), ("DATABRICKS_PAT", "hunter2"), ("CLIENT_SECRET", "hunter2")),
    ("JAVA_TOOL_OPTIONS", "-Djavax.net.ssl.trustStorePassword=hunter2"),
    ("DATABASE_URL", "postgres://u:hunter2@h/db"),
    ("AZURE_STORAGE_CONNECTION_STRING", "AccountName=lake;AccountKey=hunter2"),
    ("STORE", "Endpoint=sb://h/;SharedAccessKey=hunter2"),
]
PLAIN_VARIABLES: Final = [
    *(("PWD", "/opt/spark"), ("OLDPWD", "/opt"), ("PATH", "/bin"), ("JAVA_OPTS", "-Xmx1g -Dx=y")),
    *(("DB_PASSWORD_FILE", "/run/secrets/db"), ("DB_PASSWORD", "$(PASSWORD_OF_THE_CHART)")),
    *(("GOOGLE_APPLICATION_CREDENTIALS", "key.json"), ("DB_CREDENTIALS", "/etc/db/credentials")),
    *(("USE_TOKEN", "false"), ("API_TOKEN", ""), ("SECRET_NAME", "orders"), ("PRIMARYKEY", "id")),
    *(("DATABASE_URL", "postgres://u:$(DB_PASSWORD)@h/db"), ("BYPASS", "1"), ("COMPASS", "n")),
    ("DB_SECRET", "arn:aws:secretsmanager:eu-west-1:123456789012:secret:orders"),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/secrets/token"),
]
