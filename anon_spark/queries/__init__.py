"""The query workload: COUNT(*) queries that are answered on a table and estimated on its release.

Source: Xiao and Tao, "Anatomy: simple and effective privacy preservation" (VLDB 2006), for the
workload; LeFevre et al., "Mondrian multidimensional k-anonymity" (ICDE 2006), for estimates from
generalized classes.
"""
