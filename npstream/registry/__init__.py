"""Events whose form is in a schema registry: Avro and Protobuf in Confluent's wire format."""
