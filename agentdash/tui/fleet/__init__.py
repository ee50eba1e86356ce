"""The dashboard's screen: header, fleet list, filter, findings of the fleet."""
